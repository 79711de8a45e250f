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

// Sources of answers, besides customizations.
const (
	AnswerBundled = "bundled"
	AnswerNative  = "native"
)

// Stack has the layers of rules about kinds, as the control plane has them except for
// webhooks.
type Stack struct {
	given           []*configv1alpha1.ResourceInterpreterCustomization
	custom, bundled kinds.Layer
	native          kinds.Layer
	// Problems are the problems of the scripts.
	Problems []lua.Problem
}

// NewStack returns the layers with these customizations on top.
func NewStack(machine *lua.Machine, given []*configv1alpha1.ResourceInterpreterCustomization) *Stack {
	table, problems := machine.Layer(given)
	return &Stack{given: given, custom: table, bundled: customizations.Table(), native: native.Table(), Problems: problems}
}

// Interpreter returns an interpreter with all layers.
func (s *Stack) Interpreter() *interpreter.Interpreter { return s.With(kinds.Table{}) }

// With returns an interpreter with all layers, and with hooks in the place of webhooks, after
// the customizations.
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

// Answers returns the source of the answer to an operation for a kind; empty if there is none.
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

// inScript matches the line number in the error of a script.
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

// located puts the place of the script before an error, if the script is in one of these
// files.
func located(sources []Source, o Operation, names []string, err error) error {
	for _, s := range sources {
		if slices.Contains(names, s.Customization.Name) && *o.script(&s.Customization.Spec.Customizations) != nil {
			return fmt.Errorf("%s: %w", s.at(o, scriptLine(err)), err)
		}
	}
	return err
}
