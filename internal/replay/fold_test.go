package replay

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
)

var update = flag.Bool("update", false, "write the expected transcripts")

func writeFile(t testing.TB, text string) *File {
	path := filepath.Join(t.TempDir(), "control.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	f, err := OpenFile(path)
	require.NoError(t, err)
	return f
}

func fold(t testing.TB, src Source) (*State, string) {
	var transcript bytes.Buffer
	s, err := Fold(context.Background(), FoldConfig{Machine: counter{}, Source: src, Prefix: "q", Transcript: &transcript})
	require.NoError(t, err)
	return s, transcript.String()
}

func rowsOf(t testing.TB, s *State) string {
	var b strings.Builder
	require.NoError(t, s.Print(&b))
	return b.String()
}

// everything is a log with all that can stand in one.
func everything(t testing.TB) *log {
	l := newLog(t, 3)
	l.report("b-1", "w", 1, 2, 70_000)
	l.report("b-2", "w", 5)
	l.report("b-3", "w", 5)
	l.report("b-2", "panic", 6) // the row of b-2 is quarantined as it was before
	l.report("b-2", "w", 7)     // dead
	l.command("b-2", "repair", "")
	l.report("b-2", "w", 8)
	src := codecs.Src{Group: "q.workflow", TopicID: [16]byte{1}, Partition: 2, Offset: 10, Index: 1}
	emitted := func(src codecs.Src, more ...codecs.Header) {
		l.add("b-3", codecs.Event{Type: codecs.TypeBatchNudge, ID: src.String(), Src: src, Data: &codecs.BatchNudge{}}, more...)
	}
	emitted(src)
	emitted(src) // a repeat
	src.Index = 0
	emitted(src) // a repeat, too
	emitted(src, codecs.Header{Key: codecs.HeaderMoved, Value: []byte("1")})
	src.Offset++
	emitted(src)

	wrong := *l.report("b-3", "w", 9)
	l.records = l.records[:len(l.records)-1]
	l.next[wrong.Partition]--
	l.put((wrong.Partition+1)%3, wrong) // on the wrong partition
	wrong.Headers = append(wrong.Headers, codecs.Header{Key: codecs.HeaderMoved, Value: []byte("0")})
	l.put(codecs.Partition(wrong.Key, 3), wrong) // its moved copy
	l.put((codecs.Partition(wrong.Key, 3)+2)%3, wrong)

	l.put(0, codecs.Record{Value: []byte("no key")})
	l.put(codecs.Partition([]byte("b-3"), 3), codecs.Record{Key: []byte("b-3"), Value: []byte("no type")})
	l.command("b-1", "gc", "parts")
	l.report("b-4", "w", 1)
	l.command("b-4", "gc", "")
	l.report("b-5", "w", 1)
	l.command("b-5", "gc", "")
	l.report("b-5", "w", 1) // after it was given up
	return l
}

func TestFoldTranscript(t *testing.T) {
	src, _ := everything(t).file()
	s, transcript := fold(t, src)
	got := rowsOf(t, s) + "\n" + transcript + "\n" + s.Summary() + "\n"
	const golden = "testdata/fold.txt"
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestFoldTwiceGivesTheSame(t *testing.T) {
	src, _ := everything(t).file()
	s1, t1 := fold(t, src)
	s2, t2 := fold(t, src)
	require.Equal(t, rowsOf(t, s1), rowsOf(t, s2))
	require.Equal(t, t1, t2)
	require.Equal(t, s1.Summary(), s2.Summary())
	quiet, err := Fold(context.Background(), FoldConfig{Machine: counter{}, Source: src, Prefix: "q"})
	require.NoError(t, err)
	require.Equal(t, rowsOf(t, s1), rowsOf(t, quiet), "with and without a transcript")
}

func TestCompareWithExpectedRows(t *testing.T) {
	src, _ := everything(t).file()
	s, _ := fold(t, src)
	rows := rowsOf(t, s)
	diff, err := s.Compare(strings.NewReader(rows))
	require.NoError(t, err)
	require.Empty(t, diff)
	lines := strings.Split(strings.TrimSpace(rows), "\n")
	changed := strings.Replace(rows, lines[0], lines[0]+"0", 1) + "z-9  events=1\n"
	diff, err = s.Compare(strings.NewReader(changed))
	require.NoError(t, err)
	require.Equal(t, []string{"+ " + lines[0], "- " + lines[0] + "0", "- z-9  events=1"}, diff)
}

func TestFoldFaults(t *testing.T) {
	_, err := OpenFile(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, text := everything(t).file()
	lines := strings.SplitAfter(text, "\n")
	lines[3] = "{\"p\":9}\n"
	broken := writeFile(t, strings.Join(lines, ""))
	_, err = Fold(context.Background(), FoldConfig{Machine: counter{}, Source: broken})
	require.ErrorContains(t, err, "line 4: partition 9 of 3")
	_, err = Fold(context.Background(), FoldConfig{})
	require.ErrorContains(t, err, "no machine")
	require.ErrorContains(t, err, "no source")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	src, _ := everything(t).file()
	_, err = Fold(ctx, FoldConfig{Machine: counter{}, Source: src})
	require.ErrorIs(t, err, context.Canceled)
}

func TestFoldGivesUpAfterManyPanics(t *testing.T) {
	l := newLog(t, 1)
	for range maxFaults + 1 {
		l.report("b", "panic", 1)
		l.command("b", "repair", "")
	}
	src, _ := l.file()
	_, err := Fold(context.Background(), FoldConfig{Machine: counter{}, Source: src})
	require.ErrorContains(t, err, "machine panicked: reporter says panic")
}
