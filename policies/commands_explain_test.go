package policies_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/propagation"
)

// flotilla explain Kind ns/name [--all]: what the command line of that name
// prints, without its empty lines.
func (w *world) flotilla(args []string) (string, error) {
	if len(args) < 3 || args[0] != "explain" {
		return "", fmt.Errorf("say: flotilla explain KIND NAMESPACE/NAME")
	}
	k := args[1] + " " + args[2]
	if w.templates[k] == nil {
		return "", fmt.Errorf("no %s", k)
	}
	skip := propagation.DefaultSkipRules()
	var works []*workv1alpha1.Work
	for _, name := range slices.Sorted(maps.Keys(w.works)) {
		if strings.HasSuffix(name, "/"+k) {
			works = append(works, w.works[name])
		}
	}
	in := explain.Input{
		Template: w.templates[k], Policies: values(w.policies), Overrides: values(w.overrides), Clusters: values(w.clusters),
		Bindings: values(w.bindings), Works: works, Skip: skip, Interpreter: w.know, Now: w.now,
	}
	if b, bound := w.bindings[k]; bound {
		in.Binding = b
	}
	text := explain.Explain(in).Text(explain.TextOptions{All: slices.Contains(args, "--all")})
	return strings.ReplaceAll(text, "\n\n", "\n"), nil // an empty line ends what a script expects
}

// suspend Kind ns/name: somebody else than Flotilla stops the scheduling of a
// template, as the binding allows.
func (w *world) suspend(args []string, _ string) error {
	b := w.bindings[args[0]+" "+args[1]]
	if b == nil {
		return fmt.Errorf("no binding")
	}
	b.BindingSpec().Suspension = &workv1alpha2.Suspension{Scheduling: ptr.To(true)}
	return nil
}
