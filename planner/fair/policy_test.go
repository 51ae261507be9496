package fair

import (
	"testing"

	"github.com/trimtab/trimtab/planner/plantest"
	"github.com/trimtab/trimtab/planner/policy"
)

func TestTheyMeetTheContractOfPolicies(t *testing.T) {
	for _, o := range []policy.Policy{NJCPolicy{}, ResourceFair{}} {
		t.Run(o.Name(), func(t *testing.T) {
			plantest.Run(t, plantest.Suite{New: func() policy.Policy { return o }, Except: map[string]string{
				"NoAllocationScoresMoreThanTheBound": "the score is by weight alone: what groups and guarantees take from it is justified"}})
		})
	}
}
