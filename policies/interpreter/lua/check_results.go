package lua

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua/sandbox"
)

// requestOK returns an error if a script returned a negative request.
func requestOK(list corev1.ResourceList) error {
	for name, q := range list {
		if q.Sign() < 0 {
			return fmt.Errorf("returns requirements: %s is negative", sandbox.Line(string(name)))
		}
	}
	return nil
}

// componentsOK returns an error unless the components that a script returned can
// be used.
func componentsOK(parts []workv1alpha2.Component) error {
	names := map[string]bool{}
	for i, c := range parts {
		switch {
		case c.Name == "":
			return fmt.Errorf("returns component %d without a name", i+1)
		case names[c.Name]:
			return fmt.Errorf("returns two components named %q", sandbox.Line(c.Name))
		case c.Replicas < 0:
			return fmt.Errorf("returns component %q with %d replicas", sandbox.Line(c.Name), c.Replicas)
		}
		names[c.Name] = true
		if c.ReplicaRequirements == nil {
			continue
		}
		if err := requestOK(c.ReplicaRequirements.ResourceRequest); err != nil {
			return err
		}
	}
	return nil
}
