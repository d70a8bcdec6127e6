package stage

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
)

// The metadata of an offset commit is the state of the unit at the offset, or where the state is:
//
//	q1 <topic id> <base64 of UnitState>
//	q1 <topic id> @<partition>:<offset>     a record in <prefix>.units with the group and unit as its key
const (
	metadataMark = "q1 "
	maxMetadata  = 2 << 10 // bytes; brokers take 4 KiB by default
)

// metadata makes the text of a state. A large state is written to the topic of units first.
func (d *Desk) metadata(ctx context.Context, name *codecs.Unit, st *codecs.UnitState) (string, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(st)
	if err != nil {
		return "", fmt.Errorf("state of %s: %w", name.Path(), err)
	}
	head := metadataMark + codecs.TopicID(st.TopicId).String() + " "
	if n := base64.RawStdEncoding.EncodedLen(len(b)); len(head)+n <= maxMetadata {
		return head + base64.RawStdEncoding.EncodeToString(b), nil
	}
	rec := &kgo.Record{Topic: d.unitsTopic(), Partition: -1, Key: []byte(d.unitKey(name)), Value: b}
	if err := d.client.ProduceSync(ctx, rec).FirstErr(); err != nil {
		return "", fmt.Errorf("state of %s, %d bytes to %s: %w", name.Path(), len(b), rec.Topic, err)
	}
	return fmt.Sprintf("%s@%d:%d", head, rec.Partition, rec.Offset), nil
}

func (d *Desk) unitsTopic() string { return codecs.Topic(d.cfg.Prefix, codecs.TopicUnits) }

func (d *Desk) unitKey(u *codecs.Unit) string { return d.group + "/" + u.Path() }

// stored is what a commit's metadata says.
type stored struct {
	topicID codecs.TopicID
	state   *codecs.UnitState // nil: it is at
	at      pointer
}

type pointer struct {
	partition int32
	offset    int64
}

var errMetadata = errors.New("the metadata of the commit is not ours")

// parseMetadata reads what metadata wrote.
func parseMetadata(text string) (stored, error) {
	var m stored
	rest, ok := strings.CutPrefix(text, metadataMark)
	id, rest, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 {
		return m, errMetadata
	}
	var err error
	if m.topicID, err = codecs.ParseTopicID(id); err != nil {
		return m, fmt.Errorf("%w: %w", errMetadata, err)
	}
	if at, ok := strings.CutPrefix(rest, "@"); ok {
		p, o, _ := strings.Cut(at, ":")
		n, err1 := strconv.ParseInt(p, 10, 32)
		offset, err2 := strconv.ParseInt(o, 10, 64)
		if err1 != nil || err2 != nil || n < 0 || offset < 0 {
			return m, fmt.Errorf("%w: pointer %q", errMetadata, at)
		}
		m.at = pointer{int32(n), offset}
		return m, nil
	}
	b, err := base64.RawStdEncoding.DecodeString(rest)
	if err != nil {
		return m, fmt.Errorf("%w: %w", errMetadata, err)
	}
	m.state = &codecs.UnitState{}
	if err := proto.Unmarshal(b, m.state); err != nil {
		return m, fmt.Errorf("%w: %w", errMetadata, err)
	}
	return m, nil
}
