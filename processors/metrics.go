package processors

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters of one processor, named quiesce_processor_*, labelled with its role.
type metrics struct {
	inputs, outputs, cuts, rows, rowBytes, repeats, replays, dead, moved,
	quarantined, nudges, gaps, rewritten, recovered, lost, restarts, ignored prometheus.Counter
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
			if had := (prometheus.AlreadyRegisteredError{}); errors.As(err, &had) {
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
		ignored:     c("group_offsets_ignored_total", "Committed offsets that differed from the position of the table at take-over."),
		restarts:    c("restarts_total", "Times the processor was built again."),
	}
}

// gauges are read from the owned partitions when they are asked for.
type gauges struct {
	p                   *Processor
	lag, stalled, owned *prometheus.Desc
}

func newGauges(p *Processor) *gauges {
	role := prometheus.Labels{"role": p.cfg.Machine.Role()}
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("quiesce_processor_"+name, help, labels, role)
	}
	return &gauges{p: p,
		lag:     d("lag_records", "Input records that are not durable yet.", "partition"),
		stalled: d("stalled_seconds", "Time since the partition last made progress while it had input; 0 = it moves.", "partition"),
		owned:   d("partitions", "Owned partitions."),
	}
}

// registerGauges makes a new processor take the place of a former one of its role in this process.
func registerGauges(reg prometheus.Registerer, g *gauges) error {
	if reg == nil {
		return nil
	}
	err := reg.Register(g)
	if had := (prometheus.AlreadyRegisteredError{}); errors.As(err, &had) {
		reg.Unregister(had.ExistingCollector)
		err = reg.Register(g)
	}
	return err
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(c chan<- *prometheus.Desc) {
	c <- g.lag
	c <- g.stalled
	c <- g.owned
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(c chan<- prometheus.Metric) {
	all := g.p.Status()
	c <- prometheus.MustNewConstMetric(g.owned, prometheus.GaugeValue, float64(len(all)))
	for _, st := range all {
		id := strconv.Itoa(int(st.Partition))
		c <- prometheus.MustNewConstMetric(g.lag, prometheus.GaugeValue, float64(st.Lag), id)
		stalled := 0.0
		if st.Lag > 0 {
			stalled = time.Since(st.Moved).Seconds()
		}
		c <- prometheus.MustNewConstMetric(g.stalled, prometheus.GaugeValue, stalled, id)
	}
}
