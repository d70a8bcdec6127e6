package processors

import "github.com/prometheus/client_golang/prometheus"

// metrics are the counters of one processor, named quiesce_processor_*, labelled with its role.
type metrics struct {
	inputs, outputs, cuts, rows, rowBytes, repeats, replays, dead, moved,
	quarantined, nudges, gaps, rewritten, recovered, lost, restarts prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, role string) *metrics {
	c := func(name, help string) prometheus.Counter {
		counter := prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "quiesce", Subsystem: "processor", Name: name, Help: help,
			ConstLabels: prometheus.Labels{"role": role},
		})
		if reg == nil {
			return counter
		}
		if err := reg.Register(counter); err != nil {
			if had, ok := err.(prometheus.AlreadyRegisteredError); ok {
				return had.ExistingCollector.(prometheus.Counter)
			}
		}
		return counter
	}
	return &metrics{
		inputs:      c("inputs_total", "Input records that became durable."),
		outputs:     c("outputs_total", "Output records acknowledged."),
		cuts:        c("cuts_total", "Cuts done."),
		rows:        c("rows_total", "Table records written by cuts."),
		rowBytes:    c("row_bytes_total", "Bytes of table records written by cuts."),
		repeats:     c("repeats_total", "Machine-emitted inputs dropped as repeats."),
		replays:     c("replays_total", "Inputs that their row had already."),
		dead:        c("dead_letters_total", "Records sent to the dead letter."),
		moved:       c("moved_total", "Records re-routed to the partition of their key."),
		quarantined: c("quarantined_total", "Rows set aside because the machine failed."),
		nudges:      c("nudges_total", "Deadlines nudged."),
		gaps:        c("gaps_total", "Gaps of single-writer logs that were read."),
		rewritten:   c("rewritten_rows_total", "Rows written again because a stale record stood behind them."),
		recovered:   c("recovered_rows_total", "Table records read at take-over."),
		lost:        c("inputs_lost_total", "Input offsets deleted by retention before they were read."),
		restarts:    c("restarts_total", "Times the processor was built again."),
	}
}
