package invoices_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/binary"
	"github.com/quiesce/quiesce/internal/invoices"
)

func TestMain(m *testing.M) { binary.Main(m) }

// The processes are killed where it hurts, each at its own moment: a worker between a mail and its receipt, the workflow
// at every event of the job, the splitter when the first part of its list is in the manifest, while a second splitter
// lists the customers backwards. Every 7th completion comes twice. What the job leaves is what a plain loop says.
func TestKilledWhereItHurts(t *testing.T) {
	s := newSystem(t, invoices.Seed{Customers: 300, Orders: 24, Broken: 0.03})
	s.args["split"] = append(s.args["split"], "--kill-after", "250")
	s.args["render"] = append(s.args["render"], "--kill-after", "60")
	s.startAll()
	s.request()
	revived := s.revive("render")

	require.Negative(t, s.process("split").Wait(), "killed by itself")
	s.args["split"] = append(s.plain("split"), "--reverse")
	s.start("split")
	s.await(codecs.TopicJobs, "a proposal", func(ev *codecs.Event) bool { return ev.Type == codecs.TypeSplitProposed })
	s.process("split").Kill()
	s.args["split"] = s.plain("split")
	s.start("split")
	s.again("the split", codecs.WorkTopic(invoices.QueueSplit)) // another list, too late
	s.killAtEvents("workflow")
	revived()
	s.finish()
	mails, _ := s.evidence.Repeats()
	require.Positive(t, mails, "the mail before the kill has no receipt: it is sent again, under its id")
	s.oneList(2)
}

// Whatever is killed, and whenever: the same result.
func TestKillsChangeNothing(t *testing.T) {
	runs, seed := 1, uint64(time.Now().UnixNano())
	if os.Getenv("QUIESCE_TEST_LONG") != "" {
		runs = 20
	}
	if n, err := strconv.ParseUint(os.Getenv("QUIESCE_TEST_SEED"), 10, 64); err == nil {
		seed = n
	}
	for i := range runs {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Logf("again: QUIESCE_TEST_SEED=%d go test ./internal/invoices -run TestKillsChangeNothing", seed)
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			s := newSystem(t, invoices.Seed{Customers: 400, Broken: 0.03, Number: uint64(i + 1)})
			s.startAll()
			s.request()
			names := slices.Sorted(keys(s.args))
			for range 8 {
				wait(t, time.Duration(rng.IntN(500))*time.Millisecond)
				name := names[rng.IntN(len(names))]
				t.Logf("kill %s", name)
				s.process(name).Kill()
				s.start(name)
			}
			s.finish()
			s.oneList(1)
		})
	}
}

// wait lets the processes run for a while: kills come at random moments.
func wait(t *testing.T, d time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	<-ctx.Done()
}

// killAtEvents kills and starts a process again at every event that tells about the job, until the job has ended.
func (s *system) killAtEvents(name string) {
	n := 0
	s.await(codecs.TopicEvents, "the end of the job", func(ev *codecs.Event) bool {
		if ev.Key != s.job || isBatch(ev.Type) {
			return false
		}
		n++
		s.t.Logf("kill %s at %s", name, ev.Type)
		s.process(name).Kill()
		s.start(name)
		return terminal(ev)
	})
	require.GreaterOrEqual(s.t, n, 9, "events of the job")
}

// oneList looks at how the list of customers came to be: of the proposals, as many as were seen at least, the first in the
// log won, and the batch has its digest.
func (s *system) oneList(atLeast int) {
	var digests [][]byte
	s.await(codecs.TopicJobs, "what was proposed", func(ev *codecs.Event) bool {
		if p, ok := ev.Data.(*codecs.SplitProposed); ok {
			digests = append(digests, p.Digest)
		}
		return ev.ID == s.fence(codecs.TopicJobs)
	})
	require.GreaterOrEqual(s.t, len(digests), atLeast)
	if atLeast > 1 {
		require.NotEqual(s.t, digests[0], digests[len(digests)-1], "another list")
	}
	seals := map[string]*codecs.BatchSeal{}
	s.await(codecs.TopicControl, "the seal", func(ev *codecs.Event) bool {
		if d, ok := ev.Data.(*codecs.BatchSeal); ok {
			seals[ev.ID] = d
		}
		return ev.ID == s.fence(codecs.TopicControl)
	})
	require.Len(s.t, seals, 1)
	for _, d := range seals {
		require.Equal(s.t, digests[0], d.PayloadDigest)
	}
}
