package topics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ACL allows operations on one resource, named literally.
type ACL struct {
	Resource   string   `json:"resource"` // topic or group
	Name       string   `json:"name"`
	Operations []string `json:"operations"` // Kafka's words
}

// ACLs returns the least that the role needs, by resource and name. Reading or writing a topic includes describing it;
// reading in a group includes describing it. DescribeConfigs is for the check at start.
func (a Access) ACLs() []ACL {
	ops := map[[2]string][]string{}
	allow := func(resource string, names []string, operations ...string) {
		for _, n := range names {
			key := [2]string{resource, n}
			for _, op := range operations {
				if !slices.Contains(ops[key], op) {
					ops[key] = append(ops[key], op)
				}
			}
		}
	}
	allow("topic", a.Create, "Create")
	allow("topic", a.Read, "Read", "DescribeConfigs")
	allow("topic", a.Write, "Write", "DescribeConfigs")
	allow("topic", a.Describe, "Describe", "DescribeConfigs")
	allow("group", a.Groups, "Read")
	allow("group", a.Watch, "Describe")
	var acls []ACL
	for key, operations := range ops {
		slices.Sort(operations)
		acls = append(acls, ACL{Resource: key[0], Name: key[1], Operations: operations})
	}
	slices.SortFunc(acls, func(x, y ACL) int {
		return cmp.Or(strings.Compare(y.Resource, x.Resource), strings.Compare(x.Name, y.Name)) // topics first
	})
	return acls
}

// ACLText renders the access of roles as commands. The principal of a role is a placeholder: User:<role>.
func ACLText(roles []Access) string {
	var b strings.Builder
	for i, a := range roles {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "# %s\n", a.Role)
		for _, acl := range a.ACLs() {
			b.WriteString("kafka-acls.sh --add --allow-principal User:" + principal(a.Role))
			for _, op := range acl.Operations {
				b.WriteString(" --operation " + op)
			}
			fmt.Fprintf(&b, " --%s %s\n", acl.Resource, acl.Name)
		}
	}
	return b.String()
}

// principal makes one word of a role: "stage go-index/parse" is stage-go-index-parse.
func principal(role string) string { return strings.NewReplacer(" ", "-", "/", "-").Replace(role) }
