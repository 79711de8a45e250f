package admission

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

// Connect refuses connections to Pods, Services and Nodes: they are templates, and
// where one seems to be is what somebody wrote into it. The server would go there as
// itself, on its own network, for whoever may edit a namespace.
type Connect struct{ *admission.Handler }

var _ admission.ValidationInterface = Connect{}

// NewConnect returns the plugin.
func NewConnect() Connect { return Connect{admission.NewHandler(admission.Connect)} }

// Validate refuses what would lead to something that runs nowhere, for everybody.
func (Connect) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	switch a.GetResource().GroupResource() {
	case schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "services"}, schema.GroupResource{Resource: "nodes"}:
		return admission.NewForbidden(a, errors.New("nothing runs on the control plane: connect to it in its cluster, as flotilla exec, logs and attach do"))
	}
	return nil
}
