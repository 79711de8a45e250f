package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint/overlays"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// built is the result of a Kustomization.
type built struct {
	overlays.Result
	at   *object // the object in the file from which it comes
	came bool    // another Kustomization builds it
}

func (b built) key() client.ObjectKey { return client.ObjectKeyFromObject(b.Of) }

// shared reports objects that two Kustomizations of one source build.
func shared(l *linter, all []built) {
	type claimed struct {
		source    inventory.Source
		namespace string
		id        inventory.ID
	}
	type pair struct{ first, later client.ObjectKey }
	firsts := map[claimed]built{}
	objects, at := map[pair][]string{}, map[pair]built{}
	for _, b := range applied(all) {
		for _, obj := range b.Objects {
			id := claimed{inventory.SourceOf(b.Of), b.Of.Namespace, inventory.IDOf(obj)}
			first, taken := firsts[id]
			switch {
			case shares(obj) || strings.Contains(id.id.Namespace+id.id.Name, "${"):
			case !taken:
				firsts[id] = b
			case first.key() != b.key():
				of := pair{first.key(), b.key()}
				objects[of], at[of] = append(objects[of], inventory.Describe(id.id)), b
			}
		}
	}
	for of, names := range objects {
		slices.Sort(names)
		names = slices.Compact(names)
		what := names[0]
		if more := len(names) - 1; more > 0 {
			what += " and " + strings.Replace(counted(int64(more), "object"), " ", " more ", 1)
		}
		by, later := "", at[of]
		if later.at.name != later.Of.Name {
			by = fmt.Sprintf("Kustomization %s ", of.later)
		}
		l.add(later.at, Error, "spec.path", fmt.Sprintf("%sbuilds %s, which Kustomization %s builds, too: the control plane refuses the later one (SharedObject); remove %s",
			by, what, of.first, remedy(later)))
	}
}

// remedy returns what to do about objects that a Kustomization shares with another one.
func remedy(of built) string {
	if of.Of.Spec.TargetNamespace == "" {
		return "it from one of them"
	}
	return "it from one of them, or give one another targetNamespace"
}

// applied returns the results that the control plane applies, sorted by place: without those of suspended
// Kustomizations, and without those of files that another Kustomization builds as well.
func applied(all []built) []built {
	came := map[client.ObjectKey]bool{}
	for _, b := range all {
		came[b.key()] = came[b.key()] || b.came
	}
	out := slices.DeleteFunc(slices.Clone(all), func(b built) bool { return b.Of.Spec.Suspend || came[b.key()] && !b.came })
	slices.SortStableFunc(out, func(a, b built) int {
		return cmp.Or(strings.Compare(a.at.file, b.at.file), cmp.Compare(a.at.doc.Line, b.at.doc.Line))
	})
	return out
}

// severally are the labels or annotations that allow an object in several Kustomizations.
var severally = []map[string]string{
	{kustomizev1.GroupVersion.Group + "/ssa": kustomizev1.MergeValue},
	{kustomizev1.GroupVersion.Group + "/ssa": kustomizev1.IfNotPresentValue},
	{kustomizev1.GroupVersion.Group + "/ssa": kustomizev1.IgnoreValue},
	{kustomizev1.GroupVersion.Group + "/reconcile": kustomizev1.DisabledValue},
}

// shares reports whether an object may be in several Kustomizations.
func shares(obj *unstructured.Unstructured) bool {
	return slices.ContainsFunc(severally, func(opt map[string]string) bool { return utils.AnyInMetadata(obj, opt) })
}
