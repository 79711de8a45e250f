package overview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// surveyOf reads what a status shows, of one namespace, which has to exist, or, where
// that is empty, of all. Lists are read in pages and one after the other, and forgotten: a large
// fleet costs time, not memory.
func surveyOf(ctx context.Context, hub client.Reader, namespace string, thorough bool, now time.Time) (situation.Fleet, error) {
	s := situation.NewSurvey(now, namespace)
	known, err := exists(ctx, hub, namespace)
	if err != nil {
		return situation.Fleet{}, err
	}
	since, err := listing.Leaderless(ctx, hub)
	if err != nil {
		return situation.Fleet{}, err
	}
	within, left := client.InNamespace(namespace), &listing.Released{Hub: hub}
	for _, part := range slices.Concat([]part{
		{situation.Clusters, func() error { return surveyClusters(ctx, hub, s) }},
	}, sourceParts(ctx, hub, s, within), []part{
		{"Kustomizations", listing.Each(ctx, hub, &kustomizev1.KustomizationList{}, s.Kustomization, within)},
		{"CommitStatuses", unlessUnserved(listing.Each(ctx, hub, &gitopsv1alpha1.CommitStatusList{}, s.CommitStatus, within))},
		{"Receivers", unlessUnserved(listing.Each(ctx, hub, &notificationv1.ReceiverList{}, func(r *notificationv1.Receiver) { situation.Receiver(s, r) }, within))},
		{"PropagationPolicies", listing.Each(ctx, hub, &policyv1alpha1.PropagationPolicyList{}, func(p *policyv1alpha1.PropagationPolicy) { s.Policy(p) }, within)},
		{"ClusterPropagationPolicies", listing.Each(ctx, hub, &policyv1alpha1.ClusterPropagationPolicyList{}, func(p *policyv1alpha1.ClusterPropagationPolicy) { s.Policy(p) })},
		{"overrides", listing.Overrides(ctx, hub, namespace, s.Override)},
		{"ResourceBindings", func() error {
			for _, ns := range s.Namespaces() {
				if err := listing.Each(ctx, hub, &workv1alpha2.ResourceBindingList{}, func(b *workv1alpha2.ResourceBinding) { s.Binding(b, left.Template(ctx, b)) }, client.InNamespace(ns))(); err != nil {
					return err
				}
			}
			return nil
		}},
		{"ResourceBindings", func() error {
			return listing.ClaimBindings(ctx, hub, situation.Claims(s), func(b *workv1alpha2.ResourceBinding) { s.Binding(b, nil) })
		}},
		{"ClusterResourceBindings", listing.Each(ctx, hub, &workv1alpha2.ClusterResourceBindingList{}, func(b *workv1alpha2.ClusterResourceBinding) { s.Binding(b, left.Template(ctx, b)) })},
		{"workloads", func() error { return surveyWorkloads(ctx, hub, s) }},
		{situation.Namespaces, func() error { return surveyNamespaces(ctx, hub, namespace, s) }},
		{"Works", func() error { return surveyWorks(ctx, hub, namespace, thorough, s) }},
	}) {
		switch err := part.read(); {
		case apierrors.IsForbidden(err):
			s.Unread(part.what)
		case err != nil:
			return situation.Fleet{}, err
		}
	}
	if notice := listing.Notice(hub); notice != "" {
		s.ReadOnly(notice)
	}
	if since != "" {
		s.Leaderless(since)
	}
	if at, now, known := listing.Started(hub); known {
		s.Started(at, now)
	}
	if !known && s.Nothing() {
		s.Unread(situation.Namespaces) // it may not be there at all
	}
	return withUnsent(ctx, hub, within, s.Fleet())
}

// unlessUnserved reads objects without which nothing is missed of what runs: not where the control plane, of another version,
// does not serve them, or the user may not read them.
func unlessUnserved(read func() error) func() error {
	return func() error {
		if err := read(); !apierrors.IsForbidden(err) && !apimeta.IsNoMatchError(err) {
			return err
		}
		return nil
	}
}

// part is what a status reads of one kind.
type part struct {
	what string
	read func() error
}

// sourceParts read the sources. A control plane of another version may not serve all kinds.
func sourceParts(ctx context.Context, hub client.Reader, s *situation.Survey, within client.ListOption) []part {
	var out []part
	for _, kind := range origins.Kinds() {
		out = append(out, part{kind.Plural, func() error {
			var wrong error
			err := listing.Pages(ctx, hub, kind.List(), func(page client.ObjectList) {
				wrong = errors.Join(wrong, apimeta.EachListItem(page, func(item runtime.Object) error {
					s.Source(item.(origins.Object)) // as the kind is one of those
					return nil
				}))
			}, within)
			if apimeta.IsNoMatchError(err) {
				return nil
			}
			return errors.Join(err, wrong)
		}})
	}
	return out
}

// exists returns an error if there is no such namespace, whose status would always be ready. known
// is false if the user may not read it. An empty name means all namespaces.
func exists(ctx context.Context, hub client.Reader, namespace string) (known bool, err error) {
	if namespace == "" {
		return true, nil
	}
	switch err := hub.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{}); {
	case apierrors.IsForbidden(err):
		return false, nil
	case apierrors.IsNotFound(err):
		return false, fmt.Errorf("there is no namespace %s on the control plane: flotilla get namespaces lists those that there are", namespace)
	default:
		return true, err
	}
}

// surveyNamespaces reads the namespaces, or the one that a status is about. A user who may not read
// them still gets the objects in them.
func surveyNamespaces(ctx context.Context, hub client.Reader, namespace string, s *situation.Survey) error {
	read := listing.Each(ctx, hub, &corev1.NamespaceList{}, s.Namespace)
	if namespace != "" {
		read = func() error {
			ns := &corev1.Namespace{}
			err := hub.Get(ctx, client.ObjectKey{Name: namespace}, ns)
			s.Namespace(ns)
			return client.IgnoreNotFound(err)
		}
	}
	if err := read(); !apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// surveyWorkloads reads the metadata of the workloads in namespaces that may have templates.
func surveyWorkloads(ctx context.Context, hub client.Reader, s *situation.Survey) error {
	for _, gvk := range listing.Workloads {
		if err := listing.Metadata(ctx, hub, gvk, s.Namespaces(), s.Workload); err != nil {
			return err
		}
	}
	return listing.OtherWorkloads(ctx, hub, s.Namespaces(), s.Workload)
}

// of reports whether the first object in a Work belongs to a namespace.
func of(w *workv1alpha1.Work, namespace string) bool {
	manifest, err := manifestOf(w)
	return err == nil && manifest.GetNamespace() == namespace
}

// surveyWorks reads the Works that are being deleted, where a status is about all
// namespaces, those that fail and that no binding reports, and of the others no more than
// their metadata. A thorough one reads all of
// them, or, of a namespace, those whose cluster has yet to take up the latest version: that stands
// nowhere else for some seconds.
func surveyWorks(ctx context.Context, hub client.Reader, namespace string, thorough bool, s *situation.Survey) error {
	switch {
	case namespace != "" && thorough:
		return listing.Each(ctx, hub, &workv1alpha1.WorkList{}, func(w *workv1alpha1.Work) {
			if w.DeletionTimestamp == nil && rollup.Behind(w) && of(w, namespace) {
				s.Work(w)
			}
		})()
	case namespace != "":
		return nil
	case thorough:
		return listing.Each(ctx, hub, &workv1alpha1.WorkList{}, s.Work)()
	}
	var leaving []client.ObjectKey
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(workv1alpha1.GroupVersion.WithKind("WorkList"))
	err := listing.Each(ctx, hub, list, func(w *metav1.PartialObjectMetadata) {
		if w.DeletionTimestamp != nil {
			leaving = append(leaving, client.ObjectKeyFromObject(w))
		}
	})()
	if err != nil {
		return err
	}
	for _, key := range leaving {
		work := &workv1alpha1.Work{}
		if err := hub.Get(ctx, key, work); client.IgnoreNotFound(err) != nil {
			return err
		}
		s.Work(work)
	}
	return listing.Each(ctx, hub, &workv1alpha1.WorkList{}, func(w *workv1alpha1.Work) { situation.Unbound(s, w) }, situation.BoundToNothing)()
}

// surveyClusters reads the clusters, and when their agents last reported.
func surveyClusters(ctx context.Context, hub client.Reader, s *situation.Survey) error {
	clusters, leases, err := listing.Clusters(ctx, hub, listing.SharingKinds())
	if err != nil {
		return err
	}
	if !leases {
		s.Unread("Leases of agents")
	}
	for _, c := range clusters {
		s.Cluster(c.Cluster, c.Heard)
	}
	return surveyAwaited(ctx, hub, s)
}

// surveyAwaited reads which clusters were registered and do not exist yet. It reads nothing for a
// user who may read only clusters.
func surveyAwaited(ctx context.Context, hub client.Reader, s *situation.Survey) error {
	awaited, err := registration.AwaitedClusters(ctx, hub)
	if apierrors.IsForbidden(err) {
		return nil
	}
	for _, a := range awaited {
		s.Awaited(a.Cluster, a.Since)
	}
	return err
}
