package main

import (
	"context"
	"fmt"
	"slices"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/reconciler/apply/siblings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// itself adds to the explanation of a Kustomization, a source or a Receiver that it is not ready, why, and what to do.
func itself(template *unstructured.Unstructured, e explain.Explanation) explain.Explanation {
	s, convert := situation.NewSurvey(template.GetCreationTimestamp().Time, template.GetNamespace()), runtime.DefaultUnstructuredConverter
	var conditions []metav1.Condition
	switch template.GroupVersionKind().GroupKind() {
	case kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind).GroupKind():
		ks := &kustomizev1.Kustomization{}
		if convert.FromUnstructured(template.Object, ks) != nil {
			return e
		}
		s.Kustomization(ks)
		conditions = ks.Status.Conditions
	case notificationv1.GroupVersion.WithKind(notificationv1.ReceiverKind).GroupKind():
		r := &notificationv1.Receiver{}
		if convert.FromUnstructured(template.Object, r) != nil {
			return e
		}
		situation.Receiver(s, r)
		conditions = r.Status.Conditions
	default:
		kind, followed := origins.KindOf(template.GetKind())
		if template.GroupVersionKind().Group != sourcev1.GroupVersion.Group || !followed {
			break
		}
		source := kind.New()
		if convert.FromUnstructured(template.Object, source) != nil {
			return e
		}
		s.Source(source)
		conditions = source.GetConditions()
	}
	reason := "NotReady"
	if ready := apimeta.FindStatusCondition(conditions, meta.ReadyCondition); ready != nil {
		reason = ready.Reason
	}
	var own []explain.Problem
	for _, p := range s.Fleet().Problems {
		own = append(own, explain.Problem{Reason: reason, Message: "it is not ready: " + excerpt.Line(p.Message), Next: p.Next})
	}
	e.Problems = slices.Concat(own, e.Problems)
	return e
}

// behind adds to an explanation, before all else, that Git by now differs from the template on the control plane or
// from what clusters get. It adds nothing if the user may not read the Kustomization.
func behind(ctx context.Context, hub client.Reader, template *unstructured.Unstructured, e explain.Explanation) explain.Explanation {
	owner, owned := inventory.OwnerOf(template)
	if !owned {
		return e
	}
	ks := &kustomizev1.Kustomization{}
	if hub.Get(ctx, owner, ks) != nil {
		return e
	}
	id := inventory.IDOf(template)
	entries, err := inventory.Here(ks)
	if err != nil || !slices.ContainsFunc(entries, func(entry inventory.Entry) bool { return entry.ID == id }) {
		return e // the labels alone do not make it the owner
	}
	before := slices.Concat(left(id, ks), shared(ctx, hub, id, ks))
	if b := situation.BehindOf(ks, fetched(ctx, hub, ks)); b.Reason != "" {
		before = slices.Insert(before, 0, explain.Problem{Reason: b.Reason, Message: b.Message, Next: b.Next})
	}
	e.Problems = slices.Concat(before, e.Problems)
	return e
}

// left returns a problem for an object that is no longer in Git and that its Kustomization keeps for now.
func left(id inventory.ID, ks *kustomizev1.Kustomization) []explain.Problem {
	if !slices.Contains(inventory.Leaving(ks.Status), id) {
		return nil
	}
	message := fmt.Sprintf("it has left the files of Kustomization %s/%s, as of revision %s, and stays for now", ks.Namespace, ks.Name, excerpt.ShortRevision(ks.Status.LastAttemptedRevision))
	if ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition); ready != nil && ready.Message != "" {
		message += ": " + excerpt.Line(excerpt.Revisions(ready.Message))
	}
	return []explain.Problem{{
		Reason: "LeftGit", Message: message,
		Next: "flotilla trace kustomization/" + ks.Name + " -n " + ks.Namespace + " says what it waits for; commit it again to keep it",
	}}
}

// sharedObject is the reason of a Kustomization with an object that another one of the same source owns.
const sharedObject = "SharedObject"

// shared returns a problem for each other Kustomization that has the object in its files and therefore does not apply
// its revision. It skips those that the user may not read.
func shared(ctx context.Context, hub client.Reader, id inventory.ID, owner *kustomizev1.Kustomization) []explain.Problem {
	var out []explain.Problem
	take := func(ks *kustomizev1.Kustomization) {
		ready := apimeta.FindStatusCondition(ks.Status.Conditions, meta.ReadyCondition)
		if ready == nil || ready.Reason != sharedObject || client.ObjectKeyFromObject(ks) == client.ObjectKeyFromObject(owner) ||
			!siblings.Names(ready.Message, id) {
			return
		}
		out = append(out, explain.Problem{
			Reason: sharedObject,
			Message: fmt.Sprintf("it stands in Kustomization %s/%s, which has applied it, and in %s/%s, which does not apply revision %s for that",
				owner.Namespace, owner.Name, ks.Namespace, ks.Name, excerpt.ShortRevision(ks.Status.LastAttemptedRevision)),
			Next: "remove it from the files of one of them and commit; flotilla trace kustomization/" + ks.Name + " -n " + ks.Namespace + " says where these are",
		})
	}
	err := listing.Each(ctx, hub, &kustomizev1.KustomizationList{}, take)()
	if apierrors.IsForbidden(err) {
		_ = listing.Each(ctx, hub, &kustomizev1.KustomizationList{}, take, client.InNamespace(owner.Namespace))() // who may not is not shown it
	}
	return out
}

// fetched returns the current revision of the source of a Kustomization; empty if it is not known.
func fetched(ctx context.Context, hub client.Reader, ks *kustomizev1.Kustomization) string {
	source, err := origins.Read(ctx, hub, inventory.SourceOf(ks))
	if err != nil {
		return ""
	}
	return origins.Revision(source)
}
