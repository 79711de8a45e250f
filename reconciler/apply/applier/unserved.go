package applier

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/contents"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Awaits returns what a plan waits for that was applied but for some objects: the namespaces of its set that are being
// deleted, and are made again, or else kinds and namespaces in general.
func Awaits(ctx context.Context, a *Applier, plan Plan) error {
	ending := sets.New[string]()
	for _, c := range plan.Changes {
		name := c.Desired.GetNamespace()
		if c.Action != later || name == "" || ending.Has(name) {
			continue
		}
		var ns corev1.Namespace
		if err := a.reader.hub.Get(ctx, client.ObjectKey{Name: name}, &ns); err == nil && ns.DeletionTimestamp != nil {
			ending.Insert(name)
		}
	}
	if len(ending) == 0 {
		return errors.New("waiting for the kinds and namespaces of this revision to be served")
	}
	return fmt.Errorf("waiting until what is being deleted is gone, and made again: namespace %s", strings.Join(sets.List(ending), ", "))
}

// Unserved returns a text about what a plan still waits for: the CustomResourceDefinitions of its set that are not
// established, each with the reason in its status, or else the objects that wait.
func (a *Applier) Unserved(ctx context.Context, plan Plan) (string, error) {
	var says []string
	var waiting []inventory.ID
	for _, c := range plan.Changes {
		id := inventory.IDOf(c.Desired)
		if c.Action == later {
			waiting = append(waiting, id)
		}
		if !contents.Defines(id.GroupKind) {
			continue
		}
		found, err := a.reader.get(ctx, c.Desired)
		if err != nil {
			return "", err
		}
		if why := notEstablished(found); why != "" {
			says = append(says, inventory.Describe(id)+": "+why)
		}
	}
	if len(says) == 0 {
		return fmt.Sprintf("%s cannot be written, as their kinds or namespaces are not served", inventory.First(waiting, len(waiting))), nil
	}
	return strings.Join(says, "; "), nil
}

// notEstablished returns why the kind of a CustomResourceDefinition is not served; empty if it is. Nil means that
// the hub does not have the definition.
func notEstablished(crd *unstructured.Unstructured) string {
	if crd == nil {
		return "it is not there"
	}
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	why := "it is not established"
	for _, c := range conditions {
		fields, _ := c.(map[string]any)
		message, _ := fields["message"].(string)
		switch {
		case fields["type"] == "Established" && fields["status"] == "True":
			return ""
		case fields["type"] == "NamesAccepted" && fields["status"] == "False":
			why = "its names are not accepted: " + message
		}
	}
	return why
}
