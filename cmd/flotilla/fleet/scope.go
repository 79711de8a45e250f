package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/flotilla-io/flotilla/internal/command"
)

// Values of --operation-scope.
const (
	// ScopeHub is the control plane alone.
	ScopeHub = "karmada"
	// ScopeMembers is the member clusters.
	ScopeMembers = "members"
	// ScopeAll is both.
	ScopeAll = "all"
)

// Hub stands for the control plane among names of clusters. No cluster can have this name.
const Hub = "Karmada"

// Timeout is how long a request to one of many servers may take, so that a server that is away
// does not delay the answers of the others for longer.
const Timeout = 15 * time.Second

// Scope selects the servers that a command asks. The zero value is the control plane.
type Scope struct {
	operation string
	clusters  []string
}

// AddTo adds --operation-scope, with the allowed values, and -C/--clusters with the alias
// --cluster.
func (s *Scope) AddTo(cmd *cobra.Command, f *Flags, allowed ...string) {
	flags := cmd.Flags()
	flags.StringVarP(&s.operation, "operation-scope", "s", "", "where to look: "+command.Alternatives(allowed)+"; default is karmada, or members with --clusters")
	usage := "member cluster to ask"
	if slices.Contains(allowed, ScopeAll) {
		usage = "member clusters to ask; --operation-scope members, or all, asks all of them without it"
	}
	s.AddClustersTo(cmd, f, usage)
	complete(cmd, "operation-scope", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if s.operation != "" && !slices.Contains(allowed, s.operation) {
			return command.Usage(fmt.Errorf("there is no --operation-scope %q here: it is %s", s.operation, command.Alternatives(allowed)))
		}
		if s.operation == ScopeHub && len(s.clusters) > 0 {
			return command.Usage(errors.New("--operation-scope karmada asks no cluster: leave it out, or --clusters"))
		}
		if check == nil {
			return nil
		}
		return check(cmd, args)
	}
}

// AddClustersTo adds only -C/--clusters.
func (s *Scope) AddClustersTo(cmd *cobra.Command, f *Flags, usage string) {
	cmd.Flags().VarP(&names{of: &s.clusters}, "clusters", "C", usage)
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "cluster" {
			name = "clusters"
		}
		return pflag.NormalizedName(name)
	})
	complete(cmd, "clusters", f.CompleteClusters)
}

// names are names of clusters, separated by commas. An empty name is an error: an unset variable
// in a script would otherwise select another server.
type names struct{ of *[]string }

// Type returns the name of the value's type in help.
func (n *names) Type() string { return "strings" }

// String returns the value.
func (n *names) String() string {
	if n.of == nil {
		return ""
	}
	return strings.Join(*n.of, ",")
}

// Set adds names.
func (n *names) Set(value string) error {
	for _, name := range strings.Split(value, ",") {
		if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
			return fmt.Errorf("%q is no name of a cluster", name)
		}
		*n.of = append(*n.of, name)
	}
	return nil
}

// HubOnly reports whether only the control plane is asked.
func (s *Scope) HubOnly() bool {
	return len(s.clusters) == 0 && (s.operation == "" || s.operation == ScopeHub)
}

// Hub reports whether --operation-scope names the control plane.
func (s *Scope) Hub() bool { return s.operation == ScopeHub }

// Everywhere reports whether the control plane and all clusters are asked.
func (s *Scope) Everywhere() bool { return s.operation == ScopeAll && len(s.clusters) == 0 }

// Given reports whether --operation-scope was set.
func (s *Scope) Given() bool { return s.operation != "" }

// Named returns the clusters in --clusters.
func (s *Scope) Named() []string { return s.clusters }

// Words returns the flags of this scope for a suggested command, each after a space.
func (s *Scope) Words() string {
	var out strings.Builder
	if s.operation != "" {
		out.WriteString(" -s " + s.operation)
	}
	if len(s.clusters) > 0 {
		out.WriteString(" -C " + strings.Join(s.clusters, ","))
	}
	return out.String()
}

// One returns the only selected cluster, or "" for the control plane. It does not check that the
// cluster exists.
func (s *Scope) One() (string, error) {
	switch {
	case len(s.clusters) > 1:
		return "", command.Usage(fmt.Errorf("--clusters names %d clusters: one at a time is asked", len(s.clusters)))
	case len(s.clusters) == 1:
		return s.clusters[0], nil
	case s.HubOnly():
		return "", nil
	default:
		return "", command.Usage(errors.New("--clusters is missing: name the cluster to ask"))
	}
}

// Servers returns all selected servers: the control plane first, as Hub, and then the clusters,
// sorted.
func (s *Scope) Servers(ctx context.Context, f *Flags) ([]string, error) {
	if s.HubOnly() {
		return []string{Hub}, nil
	}
	clusters, err := s.Members(ctx, f)
	if err != nil {
		return nil, err
	}
	if s.operation == ScopeAll {
		clusters = append([]string{Hub}, clusters...)
	}
	return clusters, nil
}

// Members returns the named clusters, sorted, or all clusters if none are named. It does not
// check that named clusters exist.
func (s *Scope) Members(ctx context.Context, f *Flags) ([]string, error) {
	if len(s.clusters) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(s.clusters))), nil
	}
	clusters, err := f.clusters(ctx, Timeout)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("%w: name clusters with --clusters, or ask for the right to list them", err)
	}
	return clusters, Describe(err)
}

// Server returns kubectl's factory for a server by name; "" and Hub mean the control plane. Each
// request ends after timeout; 0 means no limit.
func (f *Flags) Server(name string, timeout time.Duration) cmdutil.Factory {
	if name == Hub {
		name = ""
	}
	if timeout == 0 {
		return f.kept(name)
	}
	return f.factory(name, timeout)
}
