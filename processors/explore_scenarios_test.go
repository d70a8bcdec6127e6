package processors

import (
	"fmt"

	"github.com/quiesce/quiesce/codecs"
)

// scenarios of the model checker. The long mode walks each to its end; else a part of each is walked.
func scenarios() []scenario {
	all := []scenario{
		{name: "a batch completes", status: true, bounds: bounds{lives: 2, zombies: 1, perCut: 1, crashes: 1},
			inputs: func(w *world, k string) { w.report(k, 1); w.seal(k, 1) }},
		{name: "two zombies", bounds: bounds{lives: 3, zombies: 2},
			inputs: func(w *world, k string) { w.report(k, 1) }},
		{name: "two zombies and the cleaner", bounds: bounds{lives: 3, zombies: 2, cleans: 1, bare: true},
			inputs: func(w *world, k string) { w.report(k, 1) }},
		{name: "the cleaner runs while a zombie sleeps", bounds: bounds{lives: 2, zombies: 1, cleans: 2, perCut: 1},
			inputs: func(w *world, k string) { w.report(k, 1); w.report(k, 2) }},
		{name: "inputs while a cut is in flight", status: true, bounds: bounds{lives: 2, zombies: 1, overlap: true},
			inputs: func(w *world, k string) { w.report(k, 1); w.report(k, 2); w.seal(k, 2) }},
		{name: "rows and outputs of several keys", bounds: bounds{lives: 2, crashes: 1, overlap: true},
			inputs: func(w *world, _ string) { w.report("b", 1); w.report("a", 1); w.report("b", 70); w.report("c", 1) }},
		{name: "a batch is collected", bounds: bounds{lives: 2, zombies: 1, crashes: 1, ages: 1, older: true},
			inputs: func(w *world, k string) { w.report(k, 1); w.command(k, "collect") }},
		{name: "status of a quarantined batch", status: true, bounds: bounds{lives: 2, zombies: 1, cleans: 1, bare: true},
			inputs: func(w *world, k string) { w.seal(k, 5); w.command(k, "panic"); w.command(k, "repair") }},
		{name: "repeats of another machine", bounds: bounds{lives: 2, zombies: 1, crashes: 1},
			inputs: func(w *world, _ string) { w.upstream(0); w.upstream(1); w.upstream(0); w.upstream(1); w.upstream(2) }},
		{name: "poison", bounds: bounds{lives: 2, zombies: 1},
			inputs: func(w *world, k string) {
				w.append(wInput, []byte(k), []byte("junk"), nil)
				w.command(k, "panic")
				w.report(k, 1)
				w.command(k, "repair")
			}},
		{name: "sends that fail", bounds: bounds{lives: 2, zombies: 1, refusals: 1},
			inputs: func(w *world, k string) { w.report(k, 1); w.report(k, 2) }},
		{name: "two partitions", partitions: 2, bounds: bounds{lives: 2, zombies: 1, crashes: 1, bare: true},
			inputs: func(w *world, k string) { w.report(k, 1) }},
	}
	for i := range all {
		if !long() {
			all[i].states = 700
		}
	}
	return all
}

// upstream is an input that another machine emitted.
func (w *world) upstream(offset int64) {
	w.produce(&codecs.Event{Type: codecs.TypeBatchReport, ID: fmt.Sprint("u", offset), Data: reportOf(uint32(offset)),
		Src: codecs.Src{Group: wTestSrc, Partition: 3, Offset: offset}}, "u")
}
