package build

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	envparse "github.com/fluxcd/pkg/envsubst/parse"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/flotilla-io/flotilla/sources/build/disclosure"
)

type variables struct {
	values     map[string]string
	strict     bool
	secret     *disclosure.Disclosure // nil if no value is secret
	annotation SecretAnnotation
}

var variableName = regexp.MustCompile(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

// newVariables returns nil if nothing is to be replaced.
func newVariables(in Input) (*variables, error) {
	spec := in.Spec
	if len(spec.Variables) == 0 && !spec.AlwaysSubstitute {
		return nil, nil
	}
	v := &variables{values: make(map[string]string, len(spec.Variables)), strict: spec.StrictVariables, annotation: spec.SecretAnnotation}
	for name, value := range spec.Variables {
		if !variableName.MatchString(name) {
			return nil, fmt.Errorf("%w: the variable name %q is not one of letters, digits and underscores", ErrSubstitute, clip(name))
		}
		v.values[name] = strings.ReplaceAll(value, "\n", "")
	}
	if in.Reveal != nil && len(spec.Secrets) > 0 {
		v.secret = disclosure.New(spec.Secrets, v.expand, in.Reveal)
	}
	return v, nil
}

// annotationFor returns the value of an object's SecretAnnotation, by its content
// before variables are replaced; empty for none.
func (v *variables) annotationFor(content any) string {
	fields, _ := content.(map[string]any)
	metadata, _ := fields["metadata"].(map[string]any)
	switch {
	case v.annotation.Key == "" || !v.secret.ContainsSecret(content):
		return ""
	case v.secret.ContainsSecret(metadata["name"]):
		return v.annotation.InName
	default:
		return v.annotation.InFields
	}
}

// replace returns an object's content with its variables replaced.
func (v *variables) replace(content any, limit int) (any, error) {
	text, err := yaml.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrInvalid, oneLine(err.Error()))
	}
	if !strings.Contains(string(text), "$") {
		return content, nil
	}
	replaced, err := v.expand(string(text), limit)
	if err != nil {
		return nil, err
	}
	if len(replaced) > limit {
		return nil, fmt.Errorf("%w: with the values in place it has more than %d bytes", ErrTooLarge, limit)
	}
	// The text may contain values of Secrets, so errors must not quote it.
	broken := fmt.Errorf("%w: with the values in place it is no longer YAML; quote the variable", ErrSubstitute)
	decoded, err := yaml.YAMLToJSONStrict([]byte(replaced))
	if err != nil {
		return nil, broken
	}
	var out any
	if err := json.UnmarshalCaseSensitivePreserveInts(decoded, &out); err != nil {
		return nil, broken
	}
	v.secret.Reveal(content, out)
	return out, nil
}

// maxUses is how many $ an object may have.
const maxUses = 50_000

// expand replaces variables in a text, unless that would take too much.
func (v *variables) expand(text string, limit int) (out string, err error) {
	if strings.Count(text, "$") > maxUses {
		return "", fmt.Errorf("%w: it uses more than %d variables", ErrTooLarge, maxUses)
	}
	// The library panics on some offsets into a value.
	defer func() {
		if recover() != nil {
			out, err = "", fmt.Errorf("%w: a variable is used in a way that has no result", ErrSubstitute)
		}
	}()
	tree, err := envparse.Parse(text)
	if err == nil {
		e := expansion{values: v.values, limit: limit}
		if e.size(tree.Root) > limit || e.steps > maxSteps {
			return "", fmt.Errorf("%w: with the values in place it may have more than %d bytes, or take too long to make", ErrTooLarge, limit)
		}
		out, err = envsubst.Eval(text, func(name string) (string, bool) {
			value, known := v.values[name]
			return value, known || !v.strict
		})
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s; write $${ for a text that is no variable", ErrSubstitute, oneLine(err.Error()))
	}
	return out, nil
}

// maxSteps bounds the comparisons that removing patterns from values takes.
const maxSteps = 1 << 28

// expansion estimates, before variables are replaced, what that takes at most.
type expansion struct {
	values map[string]string
	limit  int // larger sizes are all treated alike
	steps  int
}

// size returns how many bytes the result for a node may have.
func (e *expansion) size(node envparse.Node) int {
	size := 0
	switch node := node.(type) {
	case *envparse.TextNode:
		size = len(node.Value)
	case *envparse.ListNode:
		for _, n := range node.Nodes {
			size += e.size(n)
		}
	case *envparse.FuncNode:
		size = e.call(node)
	}
	return min(size, e.limit+1)
}

func (e *expansion) call(node *envparse.FuncNode) int {
	value, total := len(e.values[node.Param]), 0
	args := make([]int, len(node.Args))
	for n, arg := range node.Args {
		args[n] = e.size(arg)
		total += args[n]
	}
	switch {
	case node.Name == "//" && len(args) == 2:
		// A pattern matches at most once more often than there are bytes.
		times := value + 1
		if old, plain := node.Args[0].(*envparse.TextNode); plain {
			times = strings.Count(e.values[node.Param], old.Value)
		}
		return value + times*args[1]
	case strings.ContainsAny(node.Name, "#%") && len(args) == 1:
		e.steps = min(e.steps+value*value*max(args[0], 1), maxSteps+1)
		return value
	default:
		return value + total
	}
}
