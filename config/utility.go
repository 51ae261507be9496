package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/trimtab/trimtab"
)

const (
	// maxExpression bounds the text of a utility.
	maxExpression = 1000
	// maxExpressionNodes and expressionMemory bound its compilation and run.
	maxExpressionNodes = 200
	expressionMemory   = 1000
	// The grid that a utility is tried on: from 0 to gridSpan·slo.
	gridPoints = 1000
	gridSpan   = 4
)

// variables are the variables in a utility.
type variables struct {
	P   float64 `expr:"p"`
	SLO float64 `expr:"slo"`
	M   float64 `expr:"m"`
}

// language is the grammar of an expression.
type language struct {
	// name is the expression's name in errors.
	name, hint string
	// variables is a struct with the variables of the expression.
	variables any
}

func utilityLanguage() language { return language{"utility", utilityHint, variables{}} }

// expressionError is a mistake in a utility, at a position in its text.
type expressionError struct {
	line, column  int // line from 1, column from 0
	message, hint string
}

func (e *expressionError) Error() string { return e.message }
func (e *expressionError) Unwrap() error { return trimtab.ErrInvalid }

// UtilityFunc compiles the workload's utility: u(p) in [0, 1], not falling in
// p. The function may be called by several goroutines.
func (w *Workload) UtilityFunc() (func(performance float64) float64, error) {
	return Utility(w.Utility, w.SLO.Target())
}

// Utility compiles text ("linear", "quadratic", "sqrt" or an expression of p,
// slo and m = min(1, p/slo)) for one SLO > 0. The error is
// [trimtab.ErrInvalid]; the result is NaN-free, in [0, 1] and safe for
// concurrent use.
//
// Source: Cilantro (OSDI'23), section 4.1 and Table 3, for the shapes.
func Utility(text string, slo float64) (func(performance float64) float64, error) {
	if !(slo > 0) || math.IsInf(slo, 0) {
		return nil, trimtab.Invalidf("utility: slo %v, want a number > 0", slo)
	}
	m := func(p float64) float64 { return clamp(p / slo) }
	switch text {
	case "", "linear":
		return m, nil
	case "quadratic":
		return func(p float64) float64 { return m(p) * m(p) }, nil
	case "sqrt":
		return func(p float64) float64 { return math.Sqrt(m(p)) }, nil
	}
	program, err := compile(text, utilityLanguage())
	if err != nil {
		return nil, err
	}
	run := func(p float64) (float64, error) {
		machine := vm.VM{MemoryBudget: expressionMemory}
		out, err := machine.Run(program, variables{P: p, SLO: slo, M: m(p)})
		if err != nil {
			return 0, err
		}
		v, ok := out.(float64)
		if !ok || math.IsNaN(v) {
			return 0, fmt.Errorf("it is %v", out)
		}
		return clamp(v), nil
	}
	if err := tryUtility(run, slo); err != nil {
		return nil, err
	}
	return func(p float64) float64 {
		v, err := run(p)
		if err != nil {
			return 0
		}
		return v
	}, nil
}

// clamp bounds x to [0, 1]; NaN becomes 0.
func clamp(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}

// compile reads the expression with nothing but arithmetic, comparison and a
// few functions: no clock, no collections.
func compile(text string, in language) (*vm.Program, error) {
	if len(text) > maxExpression {
		return nil, &expressionError{1, 0, fmt.Sprintf("%s has %d characters, limit %d", in.name, len(text), maxExpression), "simplify it"}
	}
	one := func(name string, f func(float64) float64) expr.Option {
		return expr.Function(name, func(args ...any) (any, error) { return f(args[0].(float64)), nil }, new(func(float64) float64))
	}
	options := []expr.Option{
		expr.Env(in.variables), expr.AsFloat64(), expr.MaxNodes(maxExpressionNodes), expr.Optimize(false),
		expr.DisableAllBuiltins(),
		expr.EnableBuiltin("min"), expr.EnableBuiltin("max"), expr.EnableBuiltin("abs"),
		one("sqrt", math.Sqrt), one("exp", math.Exp), one("log", math.Log),
	}
	program, err := expr.Compile(text, options...)
	if err == nil {
		return program, onlyArithmetic(program.Node(), text, in)
	}
	var at *file.Error
	if errors.As(err, &at) {
		return nil, &expressionError{max(at.Line, 1), at.Column, in.name + ": " + at.Message, in.hint}
	}
	return nil, &expressionError{1, 0, in.name + ": " + firstLine(err.Error()), in.hint}
}

const utilityHint = "write linear, quadratic, sqrt or arithmetic on p, slo and m = min(1, p/slo); functions: min, max, abs, sqrt, exp, log"

// checker finds the first node that is not arithmetic: lists and their
// functions could run for hours within the bound on nodes.
type checker struct{ bad ast.Node }

// Visit implements [ast.Visitor].
func (c *checker) Visit(n *ast.Node) {
	switch x := (*n).(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.IdentifierNode, *ast.UnaryNode,
		*ast.ConditionalNode, *ast.CallNode, *ast.VariableDeclaratorNode:
		return
	case *ast.BuiltinNode:
		if slices.Contains([]string{"min", "max", "abs"}, x.Name) {
			return
		}
	case *ast.BinaryNode:
		if slices.Contains([]string{"+", "-", "*", "/", "%", "**", "^", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "and", "or"}, x.Operator) {
			return
		}
	}
	if c.bad == nil {
		c.bad = *n
	}
}

// onlyArithmetic returns an error at the first node that is more than that.
func onlyArithmetic(root ast.Node, text string, in language) error {
	var c checker
	ast.Walk(&root, &c)
	if c.bad == nil {
		return nil
	}
	before := string([]rune(text)[:min(c.bad.Location().From, len([]rune(text)))])
	column := len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
	return &expressionError{1 + strings.Count(before, "\n"), column, in.name + " is more than arithmetic here", in.hint}
}

// tryUtility runs u over the grid.
func tryUtility(u func(float64) (float64, error), slo float64) error {
	before := 0.0
	for i := range gridPoints + 1 {
		p := slo * gridSpan * float64(i) / gridPoints
		v, err := u(p)
		if err != nil {
			return &expressionError{1, 0, fmt.Sprintf("utility has no value at p = %.4g: %s", p, firstLine(err.Error())), "it must be a number for every p >= 0; guard a division or log with max(p, 1e-9)"}
		}
		if v < before-1e-9 {
			return &expressionError{1, 0, fmt.Sprintf("utility falls at p = %.4g, from %.4g to %.4g", p, before, v), "more performance must never be worth less: for a latency, use slo/latency as performance"}
		}
		before = max(before, v)
	}
	return nil
}
