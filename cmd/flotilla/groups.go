package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flotilla-io/flotilla/cmd/flotilla/artifacts"
	"github.com/flotilla-io/flotilla/cmd/flotilla/change"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/inspection"
	"github.com/flotilla-io/flotilla/cmd/flotilla/management"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview"
	"github.com/flotilla-io/flotilla/cmd/flotilla/planning"
	"github.com/flotilla-io/flotilla/cmd/flotilla/registration"
)

// packages has, for each package, the function that returns its commands.
var packages = []func(*fleet.Flags) []*cobra.Command{
	inspection.Commands,
	change.Commands,
	management.Commands(version),
	overview.Commands,
	registration.Commands,
	artifacts.Commands,
	planning.Commands,
}

// groups are the headings of help in their order, with the commands under each. Commands that are
// not listed are under the last heading.
var groups = []struct {
	id, title string
	commands  []string
}{
	{"basic", "Basic Commands:", []string{"explain", "get", "create", "delete", "edit"}},
	{"registration", "Cluster Registration Commands:", []string{"join", "unjoin", "token", "register", "unregister"}},
	{"management", "Cluster Management Commands:", []string{"cordon", "uncordon", "drain", "taint", "prune"}},
	{"delivery", "Delivery Commands:", []string{"plan", "status", "trace", "tree", "events", "reconcile", "suspend", "resume", "rebalance"}},
	{"artifacts", "Artifact Commands:", []string{"push", "pull", "tag", "list", "diff"}},
	{"debugging", "Troubleshooting and Debugging Commands:", []string{"attach", "logs", "exec", "port-forward", "describe", "interpret", "validate"}},
	{"advanced", "Advanced Commands:", []string{"apply", "promote", "top", "patch"}},
	{"settings", "Settings Commands:", []string{"fleet", "label", "annotate", "completion"}},
	{"other", "Other Commands:", []string{"api-resources", "api-versions", "version", "options", "kubectl", "demo", "help"}},
}

// group puts the commands of root under the headings.
func group(root *cobra.Command) {
	used := map[string]bool{groupOf("help"): true}
	for _, cmd := range root.Commands() {
		cmd.GroupID = groupOf(cmd.Name())
		used[cmd.GroupID] = true
	}
	for _, g := range groups {
		if used[g.id] {
			root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		}
	}
	root.SetHelpCommandGroupID(groupOf("help"))
}

func groupOf(command string) string {
	for _, g := range groups {
		if slices.Contains(g.commands, command) {
			return g.id
		}
	}
	return groups[len(groups)-1].id
}

// usageTemplate returns cobra's template with one line instead of the many common flags, and with
// the other flags wrapped at width; 0 means no wrapping.
func usageTemplate(root *cobra.Command, width int) string {
	const ifGlobal, end = "{{if .HasAvailableInheritedFlags}}", "{{end}}"
	template := strings.Replace(root.UsageTemplate(), "{{if .HasAvailableLocalFlags}}", "{{if and .HasParent .HasAvailableLocalFlags}}", 1)
	template = strings.ReplaceAll(template, ".LocalFlags.FlagUsages ", fmt.Sprintf("(.LocalFlags.FlagUsagesWrapped %d) ", width))
	before, rest, found := strings.Cut(template, ifGlobal)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return template
	}
	return before + "\n\n" + `Use "{{.Root.CommandPath}} options" for the flags that all commands have.` + after
}
