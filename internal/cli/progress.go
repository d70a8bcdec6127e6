package cli

import (
	"io"
	"os"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// bars are the progress bars of one command. Where w is no terminal nothing is ever written.
type bars struct {
	p *mpb.Progress
}

// newBars draws on w until wait.
func newBars(w io.Writer) *bars {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return &bars{}
	}
	return &bars{p: mpb.New(mpb.WithOutput(w), mpb.WithWidth(48))}
}

// visible says whether anybody can see them.
func (s *bars) visible() bool { return s.p != nil }

// bar is one line: name, filled part, current / total, rate. The nil bar does nothing.
type bar struct {
	b *mpb.Bar
}

// add starts a line. total may be 0 while it is not known.
func (s *bars) add(name string, total int64) *bar {
	if s.p == nil {
		return &bar{}
	}
	return &bar{b: s.p.New(total, mpb.BarStyle().Rbound("|").Lbound("|"),
		mpb.PrependDecorators(decor.Name(name, decor.WC{W: 10, C: decor.DindentRight})),
		mpb.AppendDecorators(decor.CountersNoUnit("%d / %d"), decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO)),
	)}
}

// set moves the line to current of total.
func (l *bar) set(current, total int64) {
	if l == nil || l.b == nil {
		return
	}
	l.b.SetTotal(total, false)
	l.b.SetCurrent(current)
}

// finish ends every line where it stands and waits for the last drawing.
func (s *bars) finish(lines ...*bar) {
	if s.p == nil {
		return
	}
	for _, l := range lines {
		if l.b != nil && !l.b.Completed() {
			l.b.Abort(false)
		}
	}
	s.p.Wait()
}
