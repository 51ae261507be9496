package gp_test

import (
	"testing"

	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/analyzer/learn/learntest"
)

const level = 0.9

func fresh() learn.Learner {
	l, err := gp.New(level)
	if err != nil {
		panic(err)
	}
	return l
}

func TestGPIsALearner(t *testing.T) { learntest.Run(t, fresh) }
