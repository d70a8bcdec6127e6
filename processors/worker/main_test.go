package worker_test

import (
	"testing"

	"github.com/quiesce/quiesce/internal/broker/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }
