package codecs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

var update = flag.Bool("update", false, "write golden files that are missing (existing ones are for ever)")

// TestGoldenV1 decodes the events of version 1 as they were written, in both encodings: the same line, and the same
// bytes when encoded again. A type without files fails: run with -update and commit them.
func TestGoldenV1(t *testing.T) {
	dir := filepath.Join("testdata", "golden", "v1")
	if *update {
		writeGolden(t, dir)
	}
	seen := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.bin"))
	require.NoError(t, err)
	for _, file := range files {
		base := strings.TrimSuffix(file, ".bin")
		name, _, _ := strings.Cut(filepath.Base(base), "~")
		seen[name] = true
		t.Run(filepath.Base(base), func(t *testing.T) {
			line := strings.TrimSuffix(string(readFile(t, base+".txt")), "\n")
			fromBin := decodeGolden(t, name, ContentProtobuf, readFile(t, base+".bin"))
			fromJSON := decodeGolden(t, name, ContentJSON, readFile(t, base+".json"))
			require.Equal(t, line, fromBin.String())
			require.Equal(t, line, fromJSON.String())
			require.True(t, proto.Equal(fromBin.Data, fromJSON.Data))
			for _, ev := range []*Event{fromBin, fromJSON} {
				bin, err := (&Encoder{}).Encode("t", "b-7", ev)
				require.NoError(t, err)
				require.Equal(t, readFile(t, base+".bin"), bin.Value)
				js, err := (&Encoder{JSON: true}).Encode("t", "b-7", ev)
				require.NoError(t, err)
				require.Equal(t, string(readFile(t, base+".json")), string(js.Value))
			}
		})
	}
	for _, name := range TypeNames() {
		require.True(t, seen[name], "%s has no golden files: go test ./codecs -run TestGoldenV1 -update", name)
	}
}

func decodeGolden(t *testing.T, name, content string, value []byte) *Event {
	rec := Record{Key: []byte("b-7"), Value: value, Headers: []Header{
		{HeaderType, []byte("quiesce." + name + ".v1")}, {HeaderContentType, []byte(content)}, {HeaderID, []byte("id-1")},
	}}
	var ev Event
	require.NoError(t, Decode(&rec, &ev))
	return &ev
}

func writeGolden(t *testing.T, dir string) {
	require.NoError(t, os.MkdirAll(dir, 0o755))
	write := func(name string, m proto.Message, kind string) {
		ev := Event{Type: kind, Key: "b-7", ID: "id-1", Data: m}
		base := filepath.Join(dir, name)
		if _, err := os.Stat(base + ".bin"); err == nil {
			return
		}
		bin, err := (&Encoder{}).Encode("t", "b-7", &ev)
		require.NoError(t, err)
		js, err := (&Encoder{JSON: true}).Encode("t", "b-7", &ev)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(base+".bin", bin.Value, 0o644))
		require.NoError(t, os.WriteFile(base+".json", js.Value, 0o644))
		require.NoError(t, os.WriteFile(base+".txt", []byte(ev.String()+"\n"), 0o644))
	}
	for _, name := range TypeNames() {
		m, err := NewData(name)
		require.NoError(t, err)
		fillMessage(m.ProtoReflect())
		write(name, m, name)
	}
	write(TypeBatchReport+"~items", itemsReport(), TypeBatchReport)
	write(TypeBatchReport+"~one", &BatchReport{Run: "r", Items: []*ReportItem{NewItem(41, 41, OK)}}, TypeBatchReport)
}

func readFile(t *testing.T, name string) []byte {
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return b
}

// TestGoldenRecord pins the headers of a record.
func TestGoldenRecord(t *testing.T) {
	rec, err := Encode("quiesce.events", "b-7", "/quiesce/quiesce/quiesce.controller", &Event{
		Type: TypeBatchCompleted, ID: TerminalID("b-7", "01J9", 1), Traceparent: goodTrace,
		Src:  Src{Group: "quiesce.controller", TopicID: [16]byte{0xab, 15: 1}, Partition: 3, Offset: 41, Index: 2},
		Data: &BatchEvent{Run: "01J9"},
	})
	require.NoError(t, err)
	want := []string{
		"ce_specversion: 1.0",
		"ce_id: b-7/01J9/1/terminal",
		"ce_source: /quiesce/quiesce/quiesce.controller",
		"ce_type: quiesce.batch.completed.v1",
		"ce_subject: b-7",
		"content-type: application/protobuf",
		"traceparent: " + goodTrace,
		"quiesce-src: quiesce.controller/ab000000000000000000000000000001/3/41/2",
	}
	var got []string
	for _, h := range rec.Headers {
		got = append(got, h.Key+": "+string(h.Value))
	}
	require.Equal(t, want, got)
	require.Equal(t, "b-7", string(rec.Key))
	require.EqualValues(t, -1, rec.Partition)
}

// TestGoldenRow pins the bytes of a table record and of a position row.
func TestGoldenRow(t *testing.T) {
	pos, err := Position{Topic: TopicID{1, 15: 2}, Offset: 300}.AppendBinary(nil)
	require.NoError(t, err)
	b := AppendRow(nil, RowHeader{Format: 1, Claim: 7, Applied: 299}, pos, []byte("out"))
	require.Equal(t, "5101"+"0000000000000007"+"000000000000012b"+"18"+
		"01000000000000000000000000000002"+"000000000000012c"+"6f7574", hexOf(b))
	h, row, out, err := ParseRow(b)
	require.NoError(t, err)
	require.Equal(t, RowHeader{Format: 1, Claim: 7, Applied: 299}, h)
	require.Equal(t, "out", string(out))
	p, err := ParsePosition(row)
	require.NoError(t, err)
	require.Equal(t, "position 01000000000000000000000000000002 300", p.String())
	_, err = ParseRowHeader(append([]byte{0x51, 2}, make([]byte, 16)...))
	require.ErrorIs(t, err, ErrNewFormat)
}

func hexOf(b []byte) string { return fmt.Sprintf("%x", b) }
