package review

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/expression"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/policies/plan/comparison/report"
)

// Rule is one that a change has to keep.
type Rule struct {
	name, message string
	expression    *expression.Expression
}

// What expressions see.
const (
	variableComparison = "comparison"
	variableClusters   = "clusters"
)

// Rules returns rules that can be asked. Its error names the rule that is no CEL.
func Rules(ctx context.Context, compiler *expression.Compiler, of []gitopsv1alpha1.ReviewRule) ([]Rule, error) {
	out := make([]Rule, 0, len(of))
	for i, rule := range of {
		compiled, err := compiler.Compile(ctx, rule.Expression, nil, variableComparison, variableClusters)
		if err != nil {
			return nil, fmt.Errorf("spec.rules[%d].expression of %s: %w", i, rule.Name, err)
		}
		out = append(out, Rule{name: rule.Name, message: rule.Message, expression: compiled})
	}
	return out, nil
}

// Broken is a rule that a change breaks.
type Broken struct {
	Rule string
	// Why is the rule's message, or why it cannot be asked; empty where it has none.
	Why string
}

// Ask returns the rules that a change breaks, in their order. One that cannot be asked counts as broken. Clusters are labels by
// the names of clusters. Errors: that of a context that ended.
func Ask(ctx context.Context, rules []Rule, c comparison.Comparison, clusters map[string]map[string]string) ([]Broken, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	variables, err := variablesOf(c, clusters)
	if err != nil {
		return nil, err
	}
	var out []Broken
	for _, rule := range rules {
		kept, err := rule.expression.Bool(ctx, variables, nil)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("ask the rule %s: %w", rule.name, context.Cause(ctx))
		case err != nil:
			out = append(out, Broken{rule.name, "it cannot be asked: " + err.Error()})
		case !kept:
			out = append(out, Broken{rule.name, rule.message})
		}
	}
	return out, nil
}

// variablesOf returns what expressions see. All lists are there, as one that is empty is no fault of an expression.
func variablesOf(c comparison.Comparison, clusters map[string]map[string]string) (map[string]any, error) {
	text, err := report.JSON(c)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil { // keeps whole numbers
		return nil, fmt.Errorf("read the comparison: %w", err)
	}
	for _, name := range []string{"risks", "placements", "changes", "restarts", "held"} {
		list, _ := fields[name].([]any)
		if fields[name] = list; list == nil {
			fields[name] = []any{}
		}
		for _, one := range list {
			filled(one)
		}
	}
	labels := map[string]any{}
	for name, of := range clusters {
		values := map[string]any{}
		for key, value := range of {
			values[key] = value
		}
		labels[name] = values
	}
	return map[string]any{variableComparison: fields, variableClusters: labels}, nil
}

// filled adds what is left out of an entry of a list where it is empty.
func filled(entry any) {
	fields, is := entry.(map[string]any)
	if !is {
		return
	}
	for _, name := range []string{"namespace", "kustomization", "policy", "policyBefore", "why"} {
		if fields[name] == nil {
			fields[name] = ""
		}
	}
	for _, name := range []string{"clusters", "fields", "shifts"} {
		if fields[name] == nil {
			fields[name] = []any{}
		}
	}
}
