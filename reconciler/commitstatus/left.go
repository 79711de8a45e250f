package commitstatus

import (
	"context"
	"fmt"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"

	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// notRemoved is reported of what is left.
const notRemoved = "not removed yet"

// left returns a part for what is still there of that which left a Kustomization: in clusters, and on the control plane.
func (r *Reconciler) left(ctx context.Context, s *state, removed []inventory.ID) ([]rollup.Part, error) {
	parts, err := r.gatherer.RemainingParts(ctx, s.key, removed)
	if err != nil {
		return nil, err
	}
	if beyond := inventory.RemovedBeyond(s.ks.Status); beyond > 0 {
		parts = append(parts, counted(len(inventory.Removed(s.ks.Status))+beyond, "not removed from all clusters yet"))
	}
	return append(parts, terminating(s.ks, len(parts) > 0)...), nil
}

// terminating returns a part for what the control plane is deleting still. A Kustomization that only has to remove what
// it applied is reported where nothing else of that is, and speaks for what is ahead.
func terminating(ks *kustomizev1.Kustomization, others bool) []rollup.Part {
	found, beyond := inventory.TerminatingIn(ks.Status)
	if beyond > 0 {
		return []rollup.Part{counted(len(found)+beyond, "not removed from the control plane yet")}
	}
	var parts []rollup.Part
	for _, t := range found {
		if t.Ahead || others && t.Keeps == "" && t.ID.GroupKind.Kind == kustomizev1.KustomizationKind {
			continue
		}
		part := rollup.Part{Object: objectName(t.ID, t.Nameless), State: rollup.Progressing, Reason: notRemoved}
		if t.Keeps != "" {
			part.Reason += ", " + t.Keeps
		}
		parts = append(parts, part)
	}
	return parts
}

// counted is a part for objects of which not all are named.
func counted(count int, reason string) rollup.Part {
	return rollup.Part{Object: fmt.Sprintf("%d objects", count), State: rollup.Progressing, Reason: reason}
}

// edited returns a part for what others have changed or deleted since a Kustomization is suspended: nobody brings it
// back until that goes on.
func edited(ks *kustomizev1.Kustomization) []rollup.Part {
	if !ks.Spec.Suspend {
		return nil
	}
	var parts []rollup.Part
	for _, e := range inventory.EditedIn(ks.Status) {
		reason := "changed by hand while the Kustomization is suspended"
		if e.Gone {
			reason = "deleted by hand while the Kustomization is suspended"
		}
		parts = append(parts, rollup.Part{Object: objectName(e.ID, e.Nameless), State: rollup.Progressing, Reason: reason})
	}
	return parts
}

// objectName names an object as package rollup does; nameless without its name, as text of a Secret is in that.
func objectName(id inventory.ID, nameless bool) string {
	name := id.Name
	if nameless {
		name = "***"
	}
	return id.GroupKind.Kind + " " + strings.TrimPrefix(id.Namespace+"/"+name, "/")
}
