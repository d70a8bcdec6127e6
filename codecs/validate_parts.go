package codecs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func (c checker) topic(field, s string) {
	if s == "" {
		c.bad(field, "missing")
	} else if !isTopic(s) {
		c.bad(field, "not a Kafka topic name")
	}
}

func (c checker) policy(p *Policy) {
	if p == nil {
		return
	}
	at := c.in("policy")
	at.oneOf("kind", p.Kind, "continue", "fail_fast", "tolerate")
	switch {
	case p.Kind == "tolerate":
		if _, _, err := ParseTolerate(p.Tolerate); err != nil {
			at.bad("tolerate", err.Error())
		}
	case p.Tolerate != "":
		at.bad("tolerate", "only with kind tolerate")
	}
}

// ParseTolerate reads the bound of a tolerate policy: a number of failures ("5"), or a share of the attempted tasks
// ("1%", "0.25%") in millionths.
func ParseTolerate(s string) (n uint32, millionths bool, err error) {
	text, percent := strings.CutSuffix(s, "%")
	if !percent {
		v, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return 0, false, fmt.Errorf("%q: neither a number of failures nor a percentage", clip([]byte(s)))
		}
		return uint32(v), false, nil
	}
	whole, part, _ := strings.Cut(text, ".")
	digits := whole + part + strings.Repeat("0", max(0, 4-len(part)))
	v, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || whole == "" || len(part) > 4 || v > 1e6 || strings.HasSuffix(text, ".") {
		return 0, true, fmt.Errorf("%q: not a percentage from 0%% to 100%% with at most four decimals", clip([]byte(s)))
	}
	return uint32(v), true, nil
}

func (c checker) deadlines(d *Deadlines) {
	if d == nil {
		return
	}
	at := c.in("deadlines")
	at.notNegative("seal_by", d.SealBy)
	at.notNegative("complete_by", d.CompleteBy)
	at.notNegative("no_progress_for", d.NoProgressFor)
	at.notNegative("seal_within", d.SealWithin)
	at.notNegative("complete_within", d.CompleteWithin)
}

func (c checker) labels(labels map[string]string) {
	c.atMost("labels", len(labels), MaxLabels)
	if len(labels) > MaxLabels {
		return
	}
	at := c.in("labels")
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if !isID(k) {
			at.bad(escapePointer(k), "name: "+idRule)
		}
		at.text(escapePointer(k), labels[k], maxText)
	}
}

func (c checker) subscriptions(subs []*Subscription) {
	c.atMost("notify", len(subs), MaxSubscriptions)
	for i, s := range subs {
		at := c.in("notify").nth(i)
		if s.GetEvent() == "" {
			at.bad("event", "missing")
		}
		if !slices.ContainsFunc([]string{"https://", "http://", "mailto:"}, func(p string) bool { return strings.HasPrefix(s.GetUrl(), p) }) {
			at.bad("url", "not https://, http:// or mailto:")
		}
		at.text("url", s.GetUrl(), 2048)
	}
}
