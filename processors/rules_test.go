package processors

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRulesInTheCrashMatrix switches one rule after the other off: some schedule has to show it.
func TestRulesInTheCrashMatrix(t *testing.T) {
	most := uint64(4_000)
	for name, off := range map[string]rules{
		"outputs before the row":                {outputsBeforeRow: true},
		"whole outbox sent again":               {resendAll: true},
		"outputs row by row":                    {rowByRow: true},
		"commit when rows are sent":             {commitUnacked: true},
		"no claim":                              {noClaim: true},
		"gap not read":                          {ignoreGap: true},
		"outputs before the gap":                {outputsBeforeGap: true},
		"stale keys not rewritten":              {keepStale: true},
		"parts before headers":                  {partsFirst: true},
		"deleted in one step":                   {deleteAtOnce: true},
		"null before the position":              {nullBeforePosition: true},
		"position of rows only":                 {positionOfRows: true},
		"status not repeated at take-over":      {noStatusRepeat: true},
		"repeats of machine inputs not dropped": {noDedupe: true},
		"poison stops the partition":            {poisonStops: true},
		"no quarantine":                         {noQuarantine: true},
		"dirty rows evicted":                    {evictDirty: true},
		"send errors ignored":                   {ignoreSendErrors: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= most; seed++ {
				if err := runSchedule(seed, off); err != nil {
					t.Logf("seed %d: %.300v", seed, err)
					return
				}
			}
			require.Fail(t, "no schedule shows that the rule is off", "%d schedules", most)
		})
	}
}
