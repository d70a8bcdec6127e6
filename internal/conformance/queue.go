package conformance

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/topology"
)

// topics are those that answers come on.
func (r *runner) topics() []string {
	out := []string{codecs.Topic(r.cfg.Prefix, codecs.TopicEvents), codecs.Topic(r.cfg.Prefix, codecs.TopicDeadLetter)}
	if r.script.needs(codecs.GroupWorkflow) {
		out = append(out, topology.WorkTopic(r.cfg.Prefix, r.cfg.Queue))
	}
	if r.script.needs(codecs.GroupNotifier) {
		out = append(out, topology.WorkTopic(r.cfg.Prefix, topology.NotifyQueue))
	}
	return out
}

// propose lists the sub-jobs of a step as a splitter does: the list goes to the manifest, then the proposal to the job.
// One that dies leaves the list alone.
func (r *runner) propose(ctx context.Context, s *Step) error {
	as := s.As
	if as == "" {
		as = "p"
	}
	batch := r.id(s.Of + "." + s.Propose)
	chunk := &codecs.ManifestChunk{}
	for i := range s.Tasks {
		chunk.Tasks = append(chunk.Tasks, &codecs.ManifestTask{Id: fmt.Sprintf("%s-%d", as, i)})
	}
	proposal := &codecs.SplitProposed{Step: s.Propose, Round: max(s.Round, 1), Proposal: as, Total: uint32(s.Tasks)}
	if s.Tasks > 0 {
		done, err := r.write(ctx, codecs.TopicManifest, codecs.ChunkKey(batch, as, 0), codecs.TypeManifestChunk, chunk)
		if err != nil {
			return err
		}
		proposal.Chunks = []*codecs.ChunkPosition{{Partition: uint32(done.Partition), Offset: done.Offset}}
	}
	if s.Dies {
		return nil
	}
	for range max(s.Times, 1) {
		if _, err := r.write(ctx, codecs.TopicJobs, r.id(s.Of), codecs.TypeSplitProposed, proposal); err != nil {
			return err
		}
	}
	return nil
}

// write sends one event and waits until it is in its topic.
func (r *runner) write(ctx context.Context, topic, key, typ string, data proto.Message) (*kgo.Record, error) {
	body, err := codecs.JSON(data)
	if err != nil {
		return nil, err
	}
	rec := r.record(topic, string(codecs.BatchOf([]byte(key))), typ, body)
	rec.Key = []byte(key)
	return r.client.ProduceSync(ctx, rec).First()
}
