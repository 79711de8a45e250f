package remains

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/reconciler/apply/finalization"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// deletes matches the revision, and what was deleted, in the message of an Event about an applied revision, and of one about the end
// of a Kustomization.
var deletes = regexp.MustCompile(`^(?:Applied revision: |Removed what had left revision |` + regexp.QuoteMeta(finalization.DeletedWith) + `)(\S+?)[:;]? .*\b\d+ deleted: ([^;)]+)`)

// removed says who removed an object, by Events of Kustomizations, the latest first. Of a Kustomization it says, too, what became of
// what it had applied.
func removed(events []*corev1.Event, id inventory.ID) []string {
	out := culprits(events, id)
	if id != inventory.OfKustomization(own(id)) {
		return out
	}
	for _, e := range events {
		ends := strings.HasPrefix(e.Message, finalization.DeletedWith) || strings.HasPrefix(e.Message, finalization.HandedOver)
		if says := "Its Event: " + excerpt.Line(e.Message) + "."; ends && of(e) == own(id) && !slices.Contains(out, says) {
			out = append(out, says)
		}
	}
	return out
}

// mostCulprits is how far what led to a removal is followed: Kustomizations that apply others are few levels deep.
const mostCulprits = 5

// culprits says with which revision an object was removed, or with which Kustomization, and then of that. Events name only the first few
// objects that were removed.
func culprits(events []*corev1.Event, id inventory.ID) []string {
	var out []string
	subject, object := "It", "it"
	for len(out) < mostCulprits {
		i := slices.IndexFunc(events, func(e *corev1.Event) bool { _, removes := removal(e.Message, id); return removes })
		if i < 0 {
			break
		}
		by := of(events[i])
		revision, _ := removal(events[i].Message, id)
		if !strings.HasPrefix(events[i].Message, finalization.DeletedWith) {
			return append(out, fmt.Sprintf("Kustomization %s removed %s with revision %s.", by, object, revision))
		}
		if id == inventory.OfKustomization(by) {
			break // it had applied itself
		}
		out = append(out, fmt.Sprintf("%s was deleted with Kustomization %s, which had applied revision %s.", subject, by, revision))
		subject, object, id = "That one", "that one", inventory.OfKustomization(by)
	}
	return out
}

// of is the Kustomization that an Event is about.
func of(e *corev1.Event) client.ObjectKey {
	return client.ObjectKey{Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name}
}

// own is the name of the object, as that of a Kustomization.
func own(id inventory.ID) client.ObjectKey {
	return client.ObjectKey{Namespace: id.Namespace, Name: id.Name}
}

// removal returns the revision that removed an object, from the message of an Event, which names only the first few.
func removal(message string, id inventory.ID) (revision string, removes bool) {
	found := deletes.FindStringSubmatch(message)
	if found == nil {
		return "", false
	}
	names, _, _ := strings.Cut(found[2], " and ")
	return excerpt.Line(found[1]), slices.Contains(strings.Split(names, ", "), inventory.Describe(id))
}
