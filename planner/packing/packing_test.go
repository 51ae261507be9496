package packing

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// few returns up to n amounts of whole hundredths, so that sums are compared as they are meant.
func few(t *rapid.T, name string, n, least, most int, memory bool) []Amounts {
	out := make([]Amounts, rapid.IntRange(1, n).Draw(t, name))
	for i := range out {
		out[i].CPU = float64(rapid.IntRange(least, most).Draw(t, "cpu")) / 128
		if memory {
			out[i].Memory = float64(rapid.IntRange(least, most).Draw(t, "memory")) / 128
		}
	}
	return out
}

// optimum is the least number of nodes of one size, by trying every way to place the pods.
func optimum(pods []Amounts, node Amounts) int {
	best := len(pods)
	var open []Amounts
	var place func(i int)
	place = func(i int) {
		if len(open) >= best && i < len(pods) || len(open) > best {
			return
		}
		if i == len(pods) {
			best = min(best, len(open))
			return
		}
		for k := range open {
			if before := open[k]; pods[i].fits(before) {
				open[k] = Amounts{before.CPU - pods[i].CPU, before.Memory - pods[i].Memory}
				place(i + 1)
				open[k] = before
			}
		}
		open = append(open, Amounts{node.CPU - pods[i].CPU, node.Memory - pods[i].Memory})
		place(i + 1)
		open = open[:len(open)-1]
	}
	place(0)
	return best
}

func TestBestFitNeedsAtMost11NinthsOfTheOptimumAnd6Ninths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, node := few(t, "pods", 9, 10, 128, false), Amounts{CPU: 1}
		got, opt := BestFit(pods, []Amounts{node}), optimum(pods, node)
		if got.Least > opt || opt > got.Nodes || 9*got.Nodes > 11*opt+6 || got.Unplaced != 0 {
			t.Fatalf("%v: %+v, the optimum is %d", pods, got, opt)
		}
	})
}

func TestOfTwoResourcesBestFitIsBetweenTheOptimumAndOnePodANode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, node := few(t, "pods", 7, 0, 128, true), Amounts{1, 1}
		got, opt := BestFit(pods, []Amounts{node}), optimum(pods, node)
		if got.Least > opt || opt > got.Nodes || got.Nodes > len(pods) {
			t.Fatalf("%v: %+v, the optimum is %d", pods, got, opt)
		}
	})
}

func TestNeverFewerNodesThanCapacityDemands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, nodes := few(t, "pods", 60, 0, 300, true), few(t, "nodes", 20, 1, 256, true)
		got := BestFit(pods, nodes)
		var asked, most Amounts
		unplaced := 0
		for _, p := range pods {
			if !slices.ContainsFunc(nodes, p.fits) {
				unplaced++
				continue
			}
			asked = Amounts{asked.CPU + p.CPU, asked.Memory + p.Memory}
		}
		for _, n := range nodes {
			most = Amounts{max(most.CPU, n.CPU), max(most.Memory, n.Memory)}
		}
		n := float64(got.Nodes)
		if got.Unplaced != unplaced || got.Least > got.Nodes || asked.CPU > n*most.CPU+1e-6 || asked.Memory > n*most.Memory+1e-6 || got.More > got.Nodes {
			t.Fatalf("%+v for %v on nodes of at most %v, %d fit nowhere", got, asked, most, unplaced)
		}
	})
}

func TestSmallerRequestsNeedNoMoreNodesByTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods, nodes := few(t, "pods", 30, 1, 128, true), []Amounts{{1, 1}, {2, 1}}
		before := BestFit(pods, nodes)
		for i := range pods {
			pods[i].CPU *= rapid.Float64Range(0, 1).Draw(t, "part")
		}
		if after := BestFit(pods, nodes); after.Least > before.Least {
			t.Fatalf("at least %d, before %d", after.Least, before.Least)
		}
	})
}

func TestTheLargestNodeIsOpenedFirstAndMoreOfItsKindCountWhereThoseSeenDoNotSuffice(t *testing.T) {
	nodes := []Amounts{{2, 8}, {4, 16}}
	for _, c := range []struct {
		pods []Amounts
		want Result
	}{
		{nil, Result{}},
		{[]Amounts{{1, 1}}, Result{Nodes: 1, Least: 1}},
		{[]Amounts{{3, 1}, {2, 1}}, Result{Nodes: 2, Least: 2}},
		{[]Amounts{{3, 1}, {3, 1}}, Result{Nodes: 2, Least: 2, More: 1}},
		{[]Amounts{{1, 17}, {1, 1}}, Result{Nodes: 1, Least: 1, Unplaced: 1}},
		{[]Amounts{{0, 0}}, Result{Nodes: 1, Least: 1}},
	} {
		if got := BestFit(c.pods, nodes); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.pods, got, c.want)
		}
	}
	if got := BestFit([]Amounts{{1, 1}}, nil); got != (Result{Unplaced: 1}) {
		t.Errorf("without a node: %+v", got)
	}
}
