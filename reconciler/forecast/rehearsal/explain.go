package rehearsal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/selector"
)

// Explain says why a template runs where it runs, by what the fleet holds now. Values of Secrets are not in that, nor what clusters
// report. The word names the kind as people write it; without a namespace, the template may be in any if there is only one. Its error is
// for whoever asked.
func (f *Fleet) Explain(word, namespace, name string) (explain.Explanation, error) {
	template, err := f.find(word, namespace, name)
	if err != nil {
		return explain.Explanation{}, err
	}
	in := explain.Input{
		Template: template, Policies: f.input.Policies, Overrides: f.input.Overrides, Clusters: f.input.Clusters, Skip: f.input.Skip,
		Priorities: f.input.Priorities, Scheduling: f.input.Scheduling, Interpreter: f.input.Interpreter, Now: f.input.Now,
		Unread: []explain.Unread{{What: explain.UnreadReports, Text: "what clusters report"}},
	}
	of := selector.ResourceOf(template)
	for _, quota := range f.input.Quotas {
		if quota.Namespace == of.Namespace {
			in.Quotas = append(in.Quotas, quota)
		}
	}
	for _, b := range f.input.Bindings {
		ref := b.BindingSpec().Resource
		if b.GetNamespace() == of.Namespace {
			in.Bindings = append(in.Bindings, b)
		}
		if ref.APIVersion == of.APIVersion && ref.Kind == of.Kind && ref.Namespace == of.Namespace && ref.Name == of.Name {
			in.Binding = b
		}
	}
	return explain.Explain(in), nil
}

// find returns the template of a name.
func (f *Fleet) find(word, namespace, name string) (*unstructured.Unstructured, error) {
	versioned, group := schema.ParseResourceArg(strings.ToLower(word))
	var kind schema.GroupVersionKind
	err := error(&meta.NoResourceMatchError{})
	if versioned != nil {
		kind, err = f.means.Mapper.KindFor(*versioned)
	}
	if err != nil {
		kind, err = f.means.Mapper.KindFor(group.WithVersion(""))
	}
	var several *meta.AmbiguousResourceError
	switch {
	case errors.As(err, &several):
		return nil, fmt.Errorf("%s may mean several kinds: write it with its group, such as deployments.apps", word)
	case err != nil:
		return nil, fmt.Errorf("the control plane knows no kind %s", word)
	}
	var found []*unstructured.Unstructured
	var in []string
	for _, t := range f.input.Templates {
		if t.GroupVersionKind().GroupKind() == kind.GroupKind() && t.GetName() == name && (namespace == "" || t.GetNamespace() == namespace) {
			found = append(found, t)
			in = append(in, t.GetNamespace())
		}
	}
	switch {
	case len(found) == 0 && namespace != "":
		return nil, fmt.Errorf("nothing carries a %s %s in namespace %s, or it is not there", kind.Kind, name, namespace)
	case len(found) == 0:
		return nil, fmt.Errorf("nothing carries a %s %s, or it is not there", kind.Kind, name)
	case len(found) > 1:
		slices.Sort(in)
		return nil, fmt.Errorf("there are several: say which with -n: %s", strings.Join(in[:min(len(in), mostNamespaces)], ", "))
	}
	return found[0], nil
}

// mostNamespaces is how many namespaces a line names.
const mostNamespaces = 10
