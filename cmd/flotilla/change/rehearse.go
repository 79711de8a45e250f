package change

import (
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// rehearse applies all objects in a dry run, because a policy for a refused object would be
// left behind. It skips objects in a namespace that is created by the same call: the server
// would refuse them before the namespace exists.
func (a *applyFlags) rehearse(cmd *cobra.Command, all []*resource.Info) error {
	try, err := a.kubectl.ToOptions(a.fleet.Factory(), cmd, program, nil)
	if err != nil {
		return err
	}
	if try.DryRunStrategy != cmdutil.DryRunNone {
		return nil // the call itself is a dry run
	}
	try.DryRunStrategy, try.Prune, try.PostProcessorFn = cmdutil.DryRunServer, false, nil
	try.IOStreams = genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard}
	coming, err := a.coming(cmd, all)
	if err != nil {
		return err
	}
	var asked []*resource.Info
	for _, info := range all {
		if !coming[info.Namespace] {
			one := *info
			one.Object = info.Object.DeepCopyObject()
			asked = append(asked, &one)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	try.SetObjects(asked)
	return try.Run()
}

// coming returns the namespaces among the objects, with true for those that do not exist yet.
func (a *applyFlags) coming(cmd *cobra.Command, all []*resource.Info) (map[string]bool, error) {
	set, err := a.fleet.Factory().KubernetesClientSet()
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, info := range all {
		if gvk := info.Mapping.GroupVersionKind; gvk.Group != "" || gvk.Kind != "Namespace" {
			continue
		}
		_, err := set.CoreV1().Namespaces().Get(cmd.Context(), info.Name, metav1.GetOptions{})
		out[info.Name] = apierrors.IsNotFound(err)
	}
	return out, nil
}
