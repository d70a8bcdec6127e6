package table_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quiesce/quiesce/codecs"
	"github.com/quiesce/quiesce/internal/broker/brokertest"
	"github.com/quiesce/quiesce/internal/node"
	"github.com/quiesce/quiesce/internal/sidecar/client"
	"github.com/quiesce/quiesce/topology"
)

// goleveldb's pool goroutine outlives Close by a second.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, append(brokertest.Singletons(), goleak.IgnoreAnyFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"))...)
}

// deployment is a controller and a sidecar over a broker, and a client of the sidecar.
type deployment struct {
	t         *testing.T
	ctx       context.Context
	bootstrap string
	prefix    string
	node      *node.Node
	*client.Client
}

func deploy(t *testing.T, topologies ...*topology.Topology) *deployment {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	d := &deployment{t: t, ctx: ctx, bootstrap: brokertest.Bootstrap(t), prefix: fmt.Sprintf("t%d", time.Now().UnixNano())}
	n, err := node.Start(ctx, node.Config{Bootstrap: []string{d.bootstrap}, Prefix: d.prefix, Partitions: 4, DataDir: t.TempDir(),
		Roles: []string{node.RoleController, node.RoleSidecar}, Topologies: topologies, HTTP: node.HTTP{Listen: "127.0.0.1:0"}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Stop()) })
	d.node = n
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	d.Client, err = client.New(client.Config{Address: n.Address(), HTTP: &http.Client{Transport: transport}})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return d.Ready(ctx) == nil }, time.Minute, 10*time.Millisecond, "the sidecar is not ready")
	return d
}

var none client.WriteOptions

// start starts and seals a ledger batch.
func (d *deployment) start(id string, total uint32) {
	d.t.Helper()
	_, err := d.Start(d.ctx, id, &codecs.BatchStart{MaxTotal: total}, none)
	require.NoError(d.t, err)
	_, err = d.Seal(d.ctx, id, &codecs.BatchSeal{Total: total}, none)
	require.NoError(d.t, err)
}

// report reports [first, last] with an outcome.
func (d *deployment) report(id string, first, last uint32, o codecs.Outcome_Code, reason string) {
	d.t.Helper()
	item := codecs.NewItem(first, last, o)
	item.Reason = reason
	_, err := d.Report(d.ctx, id, &codecs.BatchReport{Reporter: "test", Items: []*codecs.ReportItem{item}}, none)
	require.NoError(d.t, err)
}

const (
	waitLong = 30 * time.Second
	tick     = 10 * time.Millisecond
)
