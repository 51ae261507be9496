package planner_test

import (
	"testing"

	"github.com/trimtab/trimtab/internal/trial"
)

func TestMain(m *testing.M) { trial.Main(m, 25) }
