package welfare

import (
	"testing"

	"github.com/trimtab/trimtab/planner/plantest"
	"github.com/trimtab/trimtab/planner/policy"
)

func TestTheyMeetTheContractOfPolicies(t *testing.T) {
	for _, o := range objectives() {
		t.Run(o.Name(), func(t *testing.T) {
			plantest.Run(t, plantest.Suite{New: func() policy.Policy { return o }})
		})
		t.Run("secured "+o.Name(), func(t *testing.T) {
			plantest.Run(t, plantest.Suite{New: func() policy.Policy { return TieBreak{o} }, Except: map[string]string{
				"AnAnswerThatIsThereIsKept": "who falls short is tried with a quarter more than it has, round after round"}})
		})
	}
}
