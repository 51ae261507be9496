package dominant_test

import (
	"testing"

	"github.com/trimtab/trimtab/planner/dominant"
	"github.com/trimtab/trimtab/planner/plantest"
	"github.com/trimtab/trimtab/planner/policy"
)

func TestDRFMeetsTheContractOfPolicies(t *testing.T) {
	plantest.Run(t, plantest.Suite{New: func() policy.Policy { return dominant.Policy{} }})
}
