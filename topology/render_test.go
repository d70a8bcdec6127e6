package topology

import "testing"

func TestRenderGolden(t *testing.T) {
	for _, name := range []string{"go-index", "diamond", "two-inputs", "ledger", "retry-loop", "sink"} {
		x := sample(t, name)
		golden(t, name+".txt", x.Text())
		golden(t, name+".mmd", x.Mermaid())
		golden(t, name+".dot", x.DOT())
	}
}
