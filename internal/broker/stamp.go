package broker

import (
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	timestampType = "message.timestamp.type"
	appendTime    = "LogAppendTime"
)

// stamper gives records of append-time topics the time of their arrival.
type stamper struct {
	cluster   *kfake.Cluster
	now       func() time.Time
	byDefault bool // for topics that do not set message.timestamp.type
	batches   restamper
}

// produce is a control function of kfake: it changes the batches of a produce request and lets kfake handle it. kfake
// calls control functions one at a time.
func (s *stamper) produce(kreq kmsg.Request) (kmsg.Response, error, bool) {
	req := kreq.(*kmsg.ProduceRequest)
	now := s.now().UnixMilli()
	for i := range req.Topics {
		t := &req.Topics[i]
		if !s.stamps(t) {
			continue
		}
		for j := range t.Partitions {
			t.Partitions[j].Records = s.batches.stamp(t.Partitions[j].Records, now)
		}
	}
	return nil, nil, false
}

func (s *stamper) stamps(t *kmsg.ProduceRequestTopic) bool {
	var info *kfake.TopicInfo
	if t.Topic != "" {
		info = s.cluster.TopicInfo(t.Topic)
	} else { // since version 13 of the request
		info = s.cluster.TopicIDInfo(t.TopicID)
	}
	if info == nil {
		return false // kfake answers that there is no such topic
	}
	if v, ok := info.Configs[timestampType]; ok && v != nil {
		return *v == appendTime
	}
	return s.byDefault
}
