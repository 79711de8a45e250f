package admission

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// Connect refuses connections to Pods, Services and Nodes. They are templates, so their
// addresses are whatever a user wrote into them. The server would connect there with its
// own identity and from its own network, for any user who may edit a namespace.
type Connect struct{ *admission.Handler }

var _ admission.ValidationInterface = Connect{}

// NewConnect returns the plugin.
func NewConnect() Connect { return Connect{admission.NewHandler(admission.Connect)} }

// Validate refuses such connections, for every user: nothing runs on the control plane.
func (Connect) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	switch a.GetResource().GroupResource() {
	case schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "services"}, schema.GroupResource{Resource: "nodes"}:
		return admission.NewForbidden(a, errors.New("nothing runs on the control plane: connect to it in its cluster, as flotilla exec, logs and attach do"))
	}
	return nil
}
