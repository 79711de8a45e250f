package customization

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
	"github.com/flotilla-io/flotilla/policies/interpreter/native"
)

// Who answers, beside customizations.
const (
	AnswerBundled = "bundled"
	AnswerNative  = "native"
)

// Stack is the layers of knowledge about kinds, as the control plane has them
// but for webhooks.
type Stack struct {
	given           []*configv1alpha1.ResourceInterpreterCustomization
	custom, bundled kinds.Layer
	native          kinds.Layer
	// Problems are those of the scripts.
	Problems []lua.Problem
}

// NewStack returns the layers with these customizations on top.
func NewStack(machine *lua.Machine, given []*configv1alpha1.ResourceInterpreterCustomization) *Stack {
	table, problems := machine.Layer(given)
	return &Stack{given: given, custom: table, bundled: customizations.Table(), native: native.Table(), Problems: problems}
}

// Interpreter asks all layers.
func (s *Stack) Interpreter() *interpreter.Interpreter { return s.With(kinds.Table{}) }

// With asks all layers, and hooks where webhooks are asked: after the customizations.
func (s *Stack) With(hooks kinds.Layer) *interpreter.Interpreter {
	return interpreter.New(s.custom, hooks, s.bundled, s.native)
}

// Of returns the customizations of a kind.
func (s *Stack) Of(gvk schema.GroupVersionKind) []*configv1alpha1.ResourceInterpreterCustomization {
	var out []*configv1alpha1.ResourceInterpreterCustomization
	for _, c := range s.given {
		if schema.FromAPIVersionAndKind(c.Spec.Target.APIVersion, c.Spec.Target.Kind) == gvk {
			out = append(out, c)
		}
	}
	return out
}

// Answers says who answers an operation for a kind; empty for nobody.
func (s *Stack) Answers(o Operation, gvk schema.GroupVersionKind) string {
	switch {
	case o.known(s.custom.Rules(gvk)):
		return "customization " + strings.Join(o.names(s.Of(gvk)), ", ")
	case o.known(s.bundled.Rules(gvk)):
		return AnswerBundled
	case o.known(s.native.Rules(gvk)):
		return AnswerNative
	default:
		return ""
	}
}

// inScript finds the line in what a script's error says.
var inScript = regexp.MustCompile(`(?: line:|[^\d\s]:)(\d+)(?:\(|:)`)

// scriptLine returns the line of the script that an error is about; 0 for none.
func scriptLine(err error) int {
	m := inScript.FindStringSubmatch(err.Error())
	if m == nil {
		return 0
	}
	line, _ := strconv.Atoi(m[1]) // digits: at worst too many, then 0
	return line
}

// located puts the place of a script before what is wrong with it, if it is in
// one of these files.
func located(sources []Source, o Operation, names []string, err error) error {
	for _, s := range sources {
		if slices.Contains(names, s.Customization.Name) && *o.script(&s.Customization.Spec.Customizations) != nil {
			return fmt.Errorf("%s: %w", s.at(o, scriptLine(err)), err)
		}
	}
	return err
}
