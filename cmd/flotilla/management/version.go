package management

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/telemetry"
)

// versions is the output of version.
type versions struct {
	Client clientVersion  `json:"clientVersion"`
	Server *serverVersion `json:"serverVersion,omitempty"`
}

type clientVersion struct {
	// Version is that of Flotilla.
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"goVersion"`
}

type serverVersion struct {
	// Version is that of Flotilla; empty if the control plane does not publish it.
	Version    string `json:"version,omitempty"`
	Kubernetes string `json:"kubernetesVersion"`
	unread     bool   // the user may not read Version
}

func newVersion(f *fleet.Flags, linked string) *cobra.Command {
	var clientOnly bool
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the control plane",
		Long: `Print the versions of this program and of the control plane, and warn where they are
more than one minor version apart.`,
		Example: `  flotilla version
  flotilla version --client -o json`,
		Args: command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.Output(output, "json", "yaml"); err != nil {
				return err
			}
			build := telemetry.BuildVersion(linked)
			v := versions{Client: clientVersion{Version: build.Program, Commit: build.Commit, Go: build.Go}}
			var asked error
			if !clientOnly {
				v.Server, asked = serverOf(cmd.Context(), f)
			}
			if err := v.print(cmd.OutOrStdout(), output); err != nil || asked != nil {
				return errors.Join(err, asked)
			}
			if warning := v.skew(); warning != "" {
				_, err := fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", warning)
				return err
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "ask no control plane")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // it was defined above
	}
	return cmd
}

// serverOf reads the versions of the control plane.
func serverOf(ctx context.Context, f *fleet.Flags) (*serverVersion, error) {
	cfg, err := f.Config()
	if err != nil {
		return nil, fleet.Describe(err)
	}
	cfg.Timeout = fleet.Timeout
	server := &serverVersion{}
	err = fleet.Until(ctx, func() error {
		d, err := discovery.NewDiscoveryClientForConfig(cfg)
		if err != nil {
			return err
		}
		info, err := d.ServerVersion()
		if err == nil {
			server.Kubernetes = info.GitVersion
		}
		return err
	})
	if err != nil {
		return nil, fleet.Describe(err)
	}
	hub, err := client.New(cfg, client.Options{})
	if err != nil {
		return nil, fleet.Describe(err)
	}
	info := &corev1.ConfigMap{}
	err = hub.Get(ctx, client.ObjectKey{Namespace: workv1alpha2.NamespaceKarmadaSystem, Name: clusterv1alpha1.HubInfoName}, info)
	if apierrors.IsForbidden(err) {
		server.unread = true
		return server, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return server, fleet.Describe(err)
	}
	server.Version = info.Data[clusterv1alpha1.HubInfoVersionKey]
	return server, nil
}

func (v versions) print(out io.Writer, format string) error {
	var data []byte
	var err error
	switch format {
	case "json":
		data, err = json.MarshalIndent(v, "", "  ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(v)
	default:
		data = []byte(v.text())
	}
	if err == nil {
		_, err = out.Write(data)
	}
	return err
}

func (v versions) text() string {
	lines := []string{"Client Version: " + v.Client.Version}
	if v.Server != nil {
		switch {
		case v.Server.unread:
			lines = append(lines, "Server Version: not known: you may not read the ConfigMap "+workv1alpha2.NamespaceKarmadaSystem+"/"+clusterv1alpha1.HubInfoName)
		case v.Server.Version != "":
			lines = append(lines, "Server Version: "+v.Server.Version)
		}
		lines = append(lines, "Server Kubernetes Version: "+v.Server.Kubernetes)
	}
	return strings.Join(lines, "\n") + "\n"
}

// skew returns a warning if the versions are too far apart. It ignores versions that are not
// semantic, such as those of development builds.
func (v versions) skew() string {
	if v.Server == nil {
		return ""
	}
	ours, err := version.ParseSemantic(v.Client.Version)
	if err != nil {
		return ""
	}
	theirs, err := version.ParseSemantic(v.Server.Version)
	if err != nil {
		return ""
	}
	apart := int64(ours.Minor()) - int64(theirs.Minor())
	if ours.Major() == theirs.Major() && apart >= -1 && apart <= 1 {
		return ""
	}
	return fmt.Sprintf("this program is %s and the control plane %s: use one of at most a minor version's difference", v.Client.Version, v.Server.Version)
}
