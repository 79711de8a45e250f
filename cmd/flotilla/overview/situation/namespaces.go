package situation

import (
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/flotilla-io/flotilla/policies/cascade"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// ownedObjects is what Kustomizations own.
type ownedObjects struct {
	owned map[int][]inventory.ID // by index of the Kustomization
	// leaving are the Kustomizations that are being deleted, by index, and ending the namespaces that are.
	leaving map[int]bool
	ending  map[string]bool
	// braked has the revision that the brake refused, by Kustomization, and astray the Kustomizations whose path a revision does
	// not have, each with who applies it. Both are by index.
	braked map[int]string
	astray map[int]child
	// holders are of claims of other namespaces.
	holders holders
}

// child is a Kustomization that another one applies, and the revision that it tried.
type child struct {
	parent   types.NamespacedName
	revision string
}

// attempt records what a Kustomization says of a revision that it has not applied.
func (e ownedObjects) attempt(kustomization int, ks *kustomizev1.Kustomization, reason string) {
	switch parent, applied := inventory.OwnerOf(ks); {
	case reason == inventory.ReasonPruneBlocked:
		e.braked[kustomization] = ks.Status.LastAttemptedRevision
	case reason == inventory.ReasonPathNotFound && applied:
		e.astray[kustomization] = child{parent, ks.Status.LastAttemptedRevision}
	}
}

// followsFrom begins the next step of what is not ready because a commit is held.
const followsFrom = "follows from "

// retired returns the next step for a Kustomization whose path is not there any more, as the commit that retires or moves it is
// held where that is to be applied; empty for any other.
func (e ownedObjects) retired(kustomization int, all []Kustomization) string {
	of, astray := e.astray[kustomization]
	if !astray {
		return ""
	}
	for i, revision := range e.braked {
		if all[i].Namespace == of.parent.Namespace && all[i].Name == of.parent.Name && revision == of.revision {
			return followsFrom + "Kustomization " + of.parent.String() + ": its commit retires or moves this one, and is held"
		}
	}
	return ""
}

// standing returns what a Kustomization owns, without what goes with a namespace that is being deleted.
func (e ownedObjects) standing(kustomization int) []inventory.ID {
	if len(e.ending) == 0 {
		return e.owned[kustomization]
	}
	return slices.DeleteFunc(slices.Clone(e.owned[kustomization]), func(id inventory.ID) bool {
		return e.ending[id.Namespace] || isNamespace(id) && e.ending[id.Name]
	})
}

func isNamespace(id inventory.ID) bool { return id.GroupKind == schema.GroupKind{Kind: "Namespace"} }

// losing returns the first Kustomization that loses something with a namespace, as in "Kustomization team/web", and
// whether it makes the namespace again; empty for none.
func losing(s *Survey, namespace string) (who string, again bool) {
	for i := range s.fleet.Kustomizations {
		ks := &s.fleet.Kustomizations[i]
		if s.leaving[i] || ks.State == Suspended {
			continue
		}
		for _, id := range s.owned[i] {
			title := Problem{Kind: "Kustomization", Namespace: ks.Namespace, Name: ks.Name}.Object()
			if isNamespace(id) && id.Name == namespace {
				return title, true
			}
			if id.Namespace == namespace && who == "" {
				who = title
			}
		}
	}
	return who, false
}

// Namespace adds a namespace of the control plane, after the Kustomizations. One that is being deleted is shown if a
// Kustomization loses something with it, or if that takes long, with the reason from its conditions.
func (s *Survey) Namespace(ns *corev1.Namespace) {
	asked := ns.DeletionTimestamp
	if asked == nil {
		return
	}
	s.ending[ns.Name] = true
	who, again := losing(s, ns.Name)
	long := s.now.Sub(asked.Time) >= countTime
	if who == "" && !long {
		return
	}
	message, next := "being deleted, with all that is in it", "wait until it is gone"
	if long {
		message = strings.TrimSuffix("being deleted for "+duration.HumanDuration(s.now.Sub(asked.Time))+", and not gone: "+cascade.Remaining(ns), ": ")
		next = "free or delete what is left in it: then it goes by itself"
	}
	switch {
	case again:
		message += "; " + who + " makes it again then"
	case who != "":
		next += "; " + who + " has objects in it: create it again then, or commit it there"
	}
	s.problem(Problem{State: Progressing, Kind: "Namespace", Name: ns.Name, Message: message, Next: next})
}
