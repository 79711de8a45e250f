package placement

import (
	"fmt"
	"runtime/debug"

	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/unfit"
)

// Reason is why clusters were refused.
type Reason = unfit.Reason

// FitError says that no cluster fits. It is not tried again until a cluster,
// the policy or the template changes.
type FitError = unfit.Error

// UnschedulableError says that clusters fit but lack capacity; a later try may
// succeed.
type UnschedulableError = framework.UnschedulableError

// PluginError says that a plugin panicked. The binding keeps its placement.
type PluginError struct {
	// Plugin is its name.
	Plugin string
	// Value is what it panicked with.
	Value any
	// Stack is where, for logs.
	Stack []byte
}

func (e *PluginError) Error() string { return fmt.Sprintf("plugin %s panicked: %v", e.Plugin, e.Value) }

// Cause is the same whatever it panicked with.
func (e *PluginError) Cause() string { return "plugin " + e.Plugin }

// recoverPlugin turns a panic of the plugin into an error.
func recoverPlugin(asked *framework.Plugin, err *error) {
	if v := recover(); v != nil {
		*err = &PluginError{Plugin: (*asked).Name(), Value: v, Stack: debug.Stack()}
	}
}
