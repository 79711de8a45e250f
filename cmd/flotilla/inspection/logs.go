package inspection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/cmd/logs"
	"k8s.io/kubectl/pkg/polymorphichelpers"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
)

func newLogsCommand(f *fleet.Flags) *cobra.Command {
	var scope fleet.Scope
	options := logs.NewLogsOptions(genericiooptions.IOStreams{})
	cmd := &cobra.Command{
		Use:   "logs (POD | KIND/NAME | -l LABEL) [CONTAINER]",
		Short: "Print what a container in a member logs",
		Long: `Print what a container in a member logs.

Without --cluster the pod is looked for in all members; there must be one that has
it.`,
		Example: `  flotilla logs web-7d4b9 -n shop
  flotilla logs deployment/web -n shop -C eu-1 --follow
  flotilla logs -l app=web -n shop -C eu-1 --all-containers --prefix`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLogs(options, args); err != nil {
				return command.Usage(err)
			}
			options.IOStreams = streams(cmd)
			ctx := cmd.Context()
			cluster, err := locate(ctx, f, &scope, options.ErrOut, args[:min(1, len(args))])
			if err != nil {
				return err
			}
			err = fleet.Until(ctx, func() error { return options.Complete(f.Server(cluster, 0), cmd, args) })
			if err != nil {
				return completed(f, cluster, err)
			}
			if err := options.Validate(); err != nil {
				return command.Usage(err)
			}
			return described(f, cluster, fleet.Until(ctx, func() error { return showLogs(ctx, options) }))
		},
	}
	cmd.ValidArgsFunction = completePods(f, &scope)
	scope.AddClustersTo(cmd, f, whichCluster)
	options.AddFlags(cmd)
	return cmd
}

// checkLogs returns an error for wrong arguments, before any request.
func checkLogs(options *logs.LogsOptions, args []string) error {
	switch {
	case len(args) == 0 && options.Selector == "":
		return errors.New("POD is missing: flotilla logs web-7d4b9 -n shop")
	case len(args) > 0 && options.Selector != "":
		return errors.New("a name and --selector are given: one of them says what is meant")
	case len(args) > 2:
		return fmt.Errorf("%q is too much: a pod and one of its containers", args[2])
	}
	return nil
}

// showLogs prints the logs of the containers: one after the other, or all at once when they are
// followed.
func showLogs(ctx context.Context, o *logs.LogsOptions) error {
	ask := o.LogsForObject
	if o.AllPods {
		ask = polymorphichelpers.LogsForObjectFunc(o.AllPodLogsForObject)
	}
	requests, err := ask(o.RESTClientGetter, o.Object, o.Options, o.GetPodTimeout, o.AllContainers)
	if err != nil {
		return err
	}
	sources := make([]corev1.ObjectReference, 0, len(requests))
	for source := range requests {
		sources = append(sources, source)
	}
	slices.SortFunc(sources, func(a, b corev1.ObjectReference) int {
		return strings.Compare(a.Namespace+"/"+a.Name+"/"+a.FieldPath, b.Namespace+"/"+b.Name+"/"+b.FieldPath)
	})
	if !o.Follow || len(sources) == 1 {
		for _, source := range sources {
			if err := copyLogs(ctx, o, requests[source], prefixed(o, source, o.Out)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(sources) > o.MaxFollowConcurrency {
		return fmt.Errorf("%d containers would be followed, and %d may be: --max-log-requests allows more", len(sources), o.MaxFollowConcurrency)
	}
	return followLogs(ctx, o, sources, requests)
}

// followLogs follows several containers. The first that fails ends the others.
func followLogs(ctx context.Context, o *logs.LogsOptions, sources []corev1.ObjectReference, requests map[corev1.ObjectReference]rest.ResponseWrapper) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &lockedWriter{out: o.Out}
	var group sync.WaitGroup
	for _, source := range sources {
		group.Go(func() {
			if err := copyLogs(ctx, o, requests[source], prefixed(o, source, out)); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

func copyLogs(ctx context.Context, o *logs.LogsOptions, request rest.ResponseWrapper, out io.Writer) error {
	err := o.ConsumeRequestFn(ctx, request, out)
	if err != nil && o.IgnoreLogErrors && ctx.Err() == nil {
		_, _ = fmt.Fprintf(o.ErrOut, "warning: %s\n", oneLine(err))
		return nil
	}
	return err
}

// containerField matches the container in kubectl's field path of a log's source.
var containerField = regexp.MustCompile(`\{(.+)\}$`)

// prefixed returns a writer that begins each line with its source if --prefix is set. kubectl
// writes whole lines.
func prefixed(o *logs.LogsOptions, source corev1.ObjectReference, out io.Writer) io.Writer {
	if !o.Prefix {
		return out
	}
	container := ""
	if match := containerField.FindStringSubmatch(source.FieldPath); match != nil {
		container = match[1]
	}
	return &prefixWriter{prefix: fmt.Sprintf("[pod/%s/%s] ", source.Name, container), out: out}
}

type prefixWriter struct {
	prefix string
	out    io.Writer
}

func (w *prefixWriter) Write(line []byte) (int, error) {
	if len(line) == 0 {
		return 0, nil
	}
	if _, err := w.out.Write(append([]byte(w.prefix), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}

type lockedWriter struct {
	mutex sync.Mutex
	out   io.Writer
}

func (w *lockedWriter) Write(line []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.out.Write(line)
}
