package cilantro

import (
	"testing"

	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/analyzer/learn/learntest"
)

func TestADrowsyLearnerThatIsAwakeKeepsWhatItsLearnerCanDo(t *testing.T) {
	awake := true
	learntest.Wraps(t, func() learn.Learner {
		l, err := gp.New(0.9)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}, func(l learn.Learner) learn.Learner { return drowsy{l, &awake} })
}
