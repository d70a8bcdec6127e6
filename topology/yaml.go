package topology

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile bounds a declaration file; depth bounds its nesting.
const (
	maxFile  = 1 << 20
	maxDepth = 16
)

// decoder reads a YAML document into plain data (structs by yaml tag, maps by string, slices, scalars, durations) and
// reports every key it does not know and every value of the wrong kind, not only the first. Anchors, aliases, tags and
// merge keys are refused: a declaration says what it says.
type decoder struct {
	faults Faults
	lines  map[string]int // of every path in the document
}

// decode reads the one document in b into v, a pointer to a struct.
func decode(b []byte, v any) (map[string]int, Faults) {
	d := &decoder{lines: map[string]int{}}
	if len(b) > maxFile {
		d.faults.add("", "the file has %d bytes, at most %d are read", len(b), maxFile)
		return d.lines, d.faults
	}
	root, err := parse(b)
	if err != nil {
		return d.lines, Faults{syntaxFault(err)}
	}
	d.value(root, reflect.ValueOf(v).Elem(), "", 0)
	return d.lines, d.faults
}

func parse(b []byte) (root ast.Node, err error) {
	defer func() { // the parser is foreign code and the file foreign data
		if r := recover(); r != nil {
			err = fmt.Errorf("not readable as YAML: %v", r)
		}
	}()
	f, err := parser.ParseBytes(b, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, err
	}
	docs := f.Docs[:0]
	for _, doc := range f.Docs {
		if doc.Body != nil {
			docs = append(docs, doc)
		}
	}
	if len(docs) != 1 {
		return nil, fmt.Errorf("%d YAML documents, one is expected", len(docs))
	}
	return docs[0].Body, nil
}

// syntaxFault turns "[3:7] message" and the excerpt that follows it into a fault with a line.
func syntaxFault(err error) Fault {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if pos, rest, ok := strings.Cut(strings.TrimPrefix(text, "["), "] "); ok && strings.HasPrefix(text, "[") {
		line, _, _ := strings.Cut(pos, ":")
		if n, err := strconv.Atoi(line); err == nil {
			return Fault{Line: n, Text: rest}
		}
	}
	return Fault{Text: text}
}

func (d *decoder) fault(n ast.Node, path, format string, args ...any) {
	d.faults = append(d.faults, Fault{Path: path, Line: lineOf(n), Text: fmt.Sprintf(format, args...)})
}

func lineOf(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

var durationType = reflect.TypeFor[time.Duration]()

func (d *decoder) value(n ast.Node, v reflect.Value, path string, depth int) {
	if depth > maxDepth {
		d.fault(n, path, "nested more than %d deep", maxDepth)
		return
	}
	if path != "" && d.lines[path] == 0 {
		d.lines[path] = lineOf(n)
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path, depth)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		d.pairs(n, path, func(key string, kn, vn ast.Node) {
			e := reflect.New(v.Type().Elem()).Elem()
			d.value(vn, e, join(path, key), depth+1)
			v.SetMapIndex(reflect.ValueOf(key), e)
		})
	case reflect.Slice:
		d.sequence(n, v, path, depth)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) structure(n ast.Node, v reflect.Value, path string, depth int) {
	fields := map[string]int{}
	known := make([]string, 0, v.NumField())
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		fields[name] = i
		known = append(known, name)
	}
	d.pairs(n, path, func(key string, kn, vn ast.Node) {
		i, ok := fields[key]
		if !ok {
			d.fault(kn, join(path, key), "unknown key; known are %s", strings.Join(known, ", "))
			return
		}
		d.value(vn, v.Field(i), join(path, key), depth+1)
	})
}

// pairs calls each for every pair of a mapping. Null is an empty mapping.
func (d *decoder) pairs(n ast.Node, path string, each func(key string, kn, vn ast.Node)) {
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	case *ast.NullNode:
	default:
		d.fault(n, path, "a mapping is expected, not %s", kind(n))
	}
	seen := map[string]bool{}
	for _, p := range values {
		key, ok := text(p.Key)
		switch {
		case !ok:
			d.fault(p.Key, path, "a key must be plain text, not %s", kind(p.Key))
		case seen[key]:
			d.fault(p.Key, join(path, key), "the key is there twice")
		default:
			seen[key] = true
			d.lines[join(path, key)] = lineOf(p.Key)
			each(key, p.Key, p.Value)
		}
	}
}

func (d *decoder) sequence(n ast.Node, v reflect.Value, path string, depth int) {
	if _, null := n.(*ast.NullNode); null {
		return
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fault(n, path, "a list is expected, not %s", kind(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values)))
	for i, e := range seq.Values {
		d.value(e, v.Index(i), fmt.Sprintf("%s[%d]", path, i), depth+1)
	}
}

func (d *decoder) scalar(n ast.Node, v reflect.Value, path string) {
	s, ok := text(n)
	if !ok {
		d.fault(n, path, "a plain value is expected, not %s", kind(n))
		return
	}
	var err error
	want := "a whole number"
	switch {
	case v.Type() == durationType:
		var x time.Duration
		want = "a duration such as 90s or 2m"
		x, err = time.ParseDuration(s)
		v.SetInt(int64(x))
	case v.CanInt():
		var x int64
		x, err = strconv.ParseInt(s, 10, v.Type().Bits())
		v.SetInt(x)
	case v.CanUint():
		var x uint64
		want += " from 0"
		x, err = strconv.ParseUint(s, 10, v.Type().Bits())
		v.SetUint(x)
	case v.CanFloat():
		var x float64
		want = "a number"
		x, err = strconv.ParseFloat(s, 64)
		v.SetFloat(x)
	case v.Kind() == reflect.Bool:
		want = "true or false"
		b, isBool := n.(*ast.BoolNode)
		if !isBool {
			err = strconv.ErrSyntax
		} else {
			v.SetBool(b.Value)
		}
	default:
		v.SetString(s)
	}
	if err != nil {
		v.SetZero()
		d.fault(n, path, "%q is not %s", s, want)
	}
}

// text is a scalar as it is written.
func text(n ast.Node) (string, bool) {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value, true
	case *ast.LiteralNode:
		return s.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func kind(n ast.Node) string {
	switch n.(type) {
	case nil:
		return "nothing"
	case *ast.NullNode:
		return "null"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return "an anchor, alias, tag or merge key"
	}
	return "a value of type " + strings.ToLower(n.Type().String())
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
