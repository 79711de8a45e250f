package rehearsal

import (
	"context"
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StandIn stands for values of Secrets, and of ConfigMaps that no Kustomization reads yet: whoever writes a change could have them
// printed otherwise. It may stand in a name, too.
const StandIn = "hidden"

// standIns read the ConfigMaps and Secrets of variables, without values that are not to be shown.
type standIns struct {
	client.Reader // nil: nothing else is read
	hub           client.Reader
	// shown are the ConfigMaps that the Kustomization has on the control plane, by their names in its namespace.
	shown map[client.ObjectKey]bool
}

// shownTo returns the ConfigMaps whose values a Kustomization puts into what it applies; it may be nil.
func shownTo(ks *kustomizev1.Kustomization) map[client.ObjectKey]bool {
	out := map[client.ObjectKey]bool{}
	if ks == nil || ks.Spec.PostBuild == nil {
		return out
	}
	for _, ref := range ks.Spec.PostBuild.SubstituteFrom {
		if ref.Kind == "ConfigMap" {
			out[client.ObjectKey{Namespace: ks.Namespace, Name: ref.Name}] = true
		}
	}
	return out
}

// Get implements client.Reader.
func (s standIns) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		if err := s.hub.Get(ctx, key, obj); err != nil || s.shown[key] {
			return err
		}
		for name := range obj.Data {
			obj.Data[name] = StandIn
		}
		obj.BinaryData = nil
		return nil
	case *corev1.Secret:
		if err := s.hub.Get(ctx, key, obj); err != nil {
			return err
		}
		for name := range obj.Data {
			obj.Data[name] = []byte(StandIn)
		}
		obj.StringData = nil
		return nil
	default:
		return fmt.Errorf("a plan reads no %T", obj)
	}
}
