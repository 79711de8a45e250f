package situation

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/carriers"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/remark"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/selector"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// mostMeant is for how many policies a name is suggested.
const mostMeant = 100

// mistyped has the objects that may contain a mistyped name, at most mostMeant of each kind.
type mistyped struct {
	policies  idlePolicies // that select nothing
	partly    []namer      // policies that select something
	overrides []namer
	carriers  carriers.Set
}

// namer is a policy or an override that names objects, and has some effect in any case.
type namer struct {
	kind, namespace, name string
	selectors             []policyv1alpha1.ResourceSelector // that name an object
}

// addNamer adds a namer to a list of at most mostMeant.
func addNamer(to []namer, of namer, selectors []policyv1alpha1.ResourceSelector) []namer {
	of.selectors = naming(selectors)
	if len(of.selectors) == 0 || len(to) == mostMeant {
		return to
	}
	return append(to, of)
}

// idlePolicy is a policy that names objects and selects nothing.
type idlePolicy struct {
	note      int // index of its note
	namespace string
	selectors []policyv1alpha1.ResourceSelector
}

// idlePolicies are policies for which a name can be suggested only when all objects have been
// added.
type idlePolicies []idlePolicy

// take adds a policy if its notes, which begin at an index, say that it selects nothing.
func (m *idlePolicies) take(p policyv1alpha1.Policy, notes []Note, at int) {
	if len(notes) == 0 || notes[0].Message != remark.CarriesNothing || len(*m) == mostMeant {
		return
	}
	*m = append(*m, idlePolicy{note: at, namespace: p.GetNamespace(), selectors: naming(p.PropagationSpec().ResourceSelectors)})
}

// denied reports whether a note says of a policy that it carries nothing, and something has its claim.
func (m *mistyped) denied(n Note) bool {
	return strings.HasPrefix(n.Message, remark.Nothing) && m.carriers.Has(n.Namespace, n.Name)
}

// naming returns the selectors that name an object.
func naming(all []policyv1alpha1.ResourceSelector) []policyv1alpha1.ResourceSelector {
	return slices.DeleteFunc(slices.Clone(all), func(of policyv1alpha1.ResourceSelector) bool { return of.Name == "" })
}

// misnaming returns notes about namers whose objects do not exist, with the existing ones that
// they may mean. bound reports whether an object has a binding.
func misnaming(all []namer, others []inventory.ID, bound func(inventory.ID) bool) []Note {
	var out []Note
	for _, of := range all {
		m := idlePolicy{namespace: of.namespace, selectors: of.selectors}
		written, meant := m.means(others, bound)
		if written == "" {
			continue
		}
		out = append(out, Note{Kind: of.kind, Namespace: of.namespace, Name: of.name,
			Message: "it names " + written + ", which does not exist (did you mean " + wording.Title(meant) + "?)", Next: "correct the name in its resourceSelectors"})
	}
	return out
}

func overrideKind(o policyv1alpha1.Override) string {
	if o.GetNamespace() == "" {
		return policyv1alpha1.ResourceKindClusterOverridePolicy
	}
	return policyv1alpha1.ResourceKindOverridePolicy
}

// hint adds to the notes which objects the policies may mean: victims, that no policy selects, or else any of those
// that are there. bound reports whether an object has a binding.
func (m idlePolicies) hint(notes []Note, victims, there []inventory.ID, bound func(inventory.ID) bool) {
	for _, p := range m {
		written, meant := p.means(victims, bound)
		if written == "" {
			written, meant = p.means(there, bound)
		}
		if written == "" {
			continue
		}
		notes[p.note].Message = "it carries nothing: it names " + written + " (did you mean " + wording.Title(meant) + "?)"
		notes[p.note].Next = "correct the name in its resourceSelectors"
	}
}

// means returns the name in the policy, and the object whose name differs from it by the
// fewest typing mistakes; both are empty if there is none.
func (m *idlePolicy) means(victims []inventory.ID, bound func(inventory.ID) bool) (written string, meant inventory.ID) {
	least := 0
	for _, of := range m.selectors {
		version, _ := schema.ParseGroupVersion(of.APIVersion) // an invalid one has no group
		kind := version.WithKind(of.Kind).GroupKind()
		for _, id := range victims {
			if id.GroupKind != kind || m.namespace != "" && m.namespace != id.Namespace {
				continue
			}
			n, near := propagation.Near(of, selector.Resource{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: id.Namespace, Name: id.Name})
			itself := inventory.ID{GroupKind: kind, Namespace: cmp.Or(of.Namespace, id.Namespace), Name: of.Name}
			if !near || written != "" && n >= least || bound(itself) || slices.Contains(victims, itself) {
				continue
			}
			written, meant, least = wording.Title(inventory.ID{GroupKind: kind, Namespace: of.Namespace, Name: of.Name}), id, n
		}
	}
	return written, meant
}
