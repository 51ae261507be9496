package endtoend_test

import (
	"testing"

	"github.com/trimtab/trimtab/planner/endtoend"
	"github.com/trimtab/trimtab/planner/plantest"
	"github.com/trimtab/trimtab/planner/policy"
)

func TestItMeetsTheContractOfPolicies(t *testing.T) {
	plantest.Run(t, plantest.Suite{New: func() policy.Policy { return endtoend.Policy{} }, Except: map[string]string{
		"OfEqualWorkloadsTheFirstByNameGetsNoLess": "what is tried with whom differs by name",
		"NoAllocationScoresMoreThanTheBound":       "it looks no further than a step from what everybody has",
		"AnAnswerThatIsThereIsKept":                "that is the next step, and another trial"}})
}
