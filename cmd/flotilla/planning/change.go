package planning

import (
	"context"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
	"github.com/flotilla-io/flotilla/reconciler/forecast"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// change is the fleet before and after a change.
type change struct {
	before, after plan.FleetInput
	risks         []comparison.Risk
	// still are Kustomizations that cannot apply their files, before or after.
	still []string
	// brake judges what goes where nobody has foreseen what Kustomizations do; nil otherwise.
	brake func(comparison.Removal) string
}

// change finds out what the files do to the fleet.
func (f *planFlags) change(ctx context.Context, w *world) (change, error) {
	if !f.filed() {
		return change{before: w.fleet, after: w.fleet}, nil
	}
	source, only, follows, err := f.follows(w)
	if err != nil {
		return change{}, command.Usage(err)
	}
	if !follows {
		files, err := f.sides(ctx, nil)
		if err != nil {
			return change{}, err
		}
		return w.laid(ctx, files)
	}
	selection := w.snapshot.Selection(source)
	files, err := f.sides(ctx, &selection)
	if err != nil {
		return change{}, err
	}
	return w.followed(ctx, files, source, only)
}

// kinds of sources by the words of --source, in lower case.
var kinds = map[string]string{
	"gitrepository": sourcev1.GitRepositoryKind, "ocirepository": sourcev1.OCIRepositoryKind, "bucket": sourcev1.BucketKind, "externalartifact": "ExternalArtifact",
}

// follows returns the source whose Kustomizations are planned, and the only one of them that is to be shown; false if none is named.
func (f *planFlags) follows(w *world) (source inventory.Source, only client.ObjectKey, follows bool, err error) {
	if f.kustomization != "" {
		only.Namespace, only.Name, _ = strings.Cut(f.kustomization, "/")
		ks := w.snapshot.Kustomization(only.Namespace, only.Name)
		if ks == nil && f.source == "" {
			return source, only, true, fmt.Errorf("there is no Kustomization %s in the fleet: flotilla get kustomizations -A lists them; one that comes with the change needs --source, too", f.kustomization)
		}
		if ks != nil {
			source = inventory.SourceOf(ks)
		}
	}
	if f.source == "" {
		return source, only, f.kustomization != "", nil
	}
	kind, name, has := strings.Cut(f.source, "/")
	if !has {
		kind, name = sourcev1.GitRepositoryKind, f.source
	}
	named := inventory.Source{Kind: kinds[strings.ToLower(kind)]}
	if named.Kind == "" || name == "" || strings.Contains(name, "/") {
		return source, only, true, fmt.Errorf("--source %q is not [KIND/]NAME[.NAMESPACE], such as gitrepository/fleet.flux-system", f.source)
	}
	named.Namespace, named.Name = w.reading.namespace, name
	if at := strings.LastIndex(name, "."); at > 0 && f.hub.Namespace == "" {
		named.Namespace, named.Name = name[at+1:], name[:at]
	}
	if source != named && source != (inventory.Source{}) {
		return source, only, true, fmt.Errorf("Kustomization %s has the source %s, and not %s: leave out --source", f.kustomization, source, named)
	}
	if !slices.ContainsFunc(w.snapshot.Kustomizations, func(ks kustomizev1.Kustomization) bool { return inventory.SourceOf(&ks) == named }) {
		return named, only, true, fmt.Errorf("no Kustomization has the source %s: flotilla get kustomizations -A lists them with theirs", named)
	}
	return named, only, true, nil
}

// followed foresees what the Kustomizations of a source make of files.
func (w *world) followed(ctx context.Context, files sides, source inventory.Source, only client.ObjectKey) (change, error) {
	state, err := forecast.StateOf(w.fleet, w.snapshot.Kustomizations)
	if err != nil {
		return change{}, err
	}
	f := &forecast.Forecaster{Build: w.build, Eligible: eligible, Scope: w.reading.scope, Brake: inventory.DefaultBrake()}
	if w.hub != nil {
		f.Look = w.look
	}
	if !files.base.empty() {
		base, err := f.After(ctx, forecast.Query{Before: state, Revision: forecast.Revision{
			Source: source, Name: files.base.revision, Allows: files.base.allows, Files: tree(files.base.files), Stands: true,
		}})
		if err != nil {
			return change{}, err
		}
		state = base.After
	} else {
		f.Complete = w.tried
	}
	clusters := state.Fleet.Clusters
	state.Fleet = w.supposed.After(state.Fleet) // what is refused, as a cluster is unknown, is so by those that there will be
	head, err := f.After(ctx, forecast.Query{Before: state, Only: only, Revision: forecast.Revision{
		Source: source, Name: files.head.revision, Allows: files.head.allows, Files: tree(files.head.files),
	}})
	if err == nil && only != (client.ObjectKey{}) && head.Before.Kustomizations[only] == nil && head.After.Kustomizations[only] == nil {
		err = command.Usage(fmt.Errorf("there is no Kustomization %s before or after the change", only))
	}
	head.Before.Fleet.Clusters, head.Before.Fleet.Reported = clusters, nil
	return change{before: head.Before.Fleet, after: head.After.Fleet, risks: head.Risks, still: head.Still}, err
}

// eligible says who may take over what leaves others. Which accounts the control plane lets do so is not known here.
func eligible(ks *kustomizev1.Kustomization, _ string) bool { return ks.Spec.KubeConfig == nil }

// laid puts files about which no Kustomization is named into the place of what the fleet has.
func (w *world) laid(ctx context.Context, files sides) (change, error) {
	out := change{brake: forecast.Brake(w.snapshot.Kustomization)}
	objects, err := w.reading.objects(ctx, files.head)
	if err != nil {
		return out, err
	}
	if err := w.missing(ctx, objects); err != nil {
		return out, err
	}
	out.before = w.fleet
	rest, head := w.fleet, idsOf(objects)
	var was []*unstructured.Unstructured
	if !files.base.empty() {
		if was, err = w.reading.objects(ctx, files.base); err != nil {
			return out, err
		}
		if out.before, err = forecast.With(out.before, was, false); err != nil {
			return out, err
		}
		old := idsOf(was)
		rest = forecast.Without(out.before, func(id inventory.ID, obj metav1.Object) bool { return old[id] && !head[id] && !kept(obj) })
	} else if w.hub != nil {
		if objects, err = w.tried(ctx, objects); err != nil {
			return out, err
		}
	}
	out.risks = w.children(was, objects, !files.base.empty())
	out.after, err = forecast.With(rest, objects, true)
	return out, err
}

// kept reports whether an object stays where files do not have it any more.
func kept(obj metav1.Object) bool {
	for _, name := range []string{"/prune", "/reconcile"} {
		name = kustomizev1.GroupVersion.Group + name
		if strings.EqualFold(obj.GetLabels()[name], kustomizev1.DisabledValue) || strings.EqualFold(obj.GetAnnotations()[name], kustomizev1.DisabledValue) {
			return true
		}
	}
	return false
}

func idsOf(objects []*unstructured.Unstructured) map[inventory.ID]bool {
	out := make(map[inventory.ID]bool, len(objects))
	for _, obj := range objects {
		out[inventory.IDOf(obj)] = true
	}
	return out
}

// children returns the Kustomizations among files that come, change or go, which are not followed here. They are compared
// with those of the files before, if there are any, and else with those of the control plane.
func (w *world) children(was, objects []*unstructured.Unstructured, files bool) []comparison.Risk {
	before := kustomizationsIn(was)
	after := kustomizationsIn(objects)
	for i := range w.snapshot.Kustomizations {
		ks := &w.snapshot.Kustomizations[i]
		if key := client.ObjectKeyFromObject(ks); !files && after[key] != nil {
			before[key] = ks
		}
	}
	return notFollowed(before, after)
}
