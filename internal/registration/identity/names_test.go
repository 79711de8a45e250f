package identity_test

import (
	"testing"

	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

func TestClusterOfRights(t *testing.T) {
	cases := map[string]string{ // empty: not an agent's
		"system:karmada:north:agent":                                "north",
		"system:karmada:north:agent-work":                           "north",
		"system:karmada:north:agent-":                               "north",
		"system:karmada:north:agents":                               "",
		"system:karmada:north:agent:agent":                          "",
		"system:karmada::agent":                                     "",
		"system:karmada:a:b:agent":                                  "",
		"system:karmada:North:agent":                                "",
		"system:karmada:agent-bootstrapper":                         "",
		"system:karmada:agent":                                      "",
		"x:system:karmada:north:agent":                              "",
		"north:agent":                                               "",
		"system:karmada:north:agent-x:agent":                        "north",
		"cluster-admin":                                             "",
		"system:karmada:certificatesigningrequest:selfautoapprover": "",
	}
	for name, want := range cases {
		if got, ok := identity.ClusterOfRights(name); got != want && ok || ok != (want != "") {
			t.Errorf("ClusterOfRights(%q) = %q, %v, want %q", name, got, ok, want)
		}
	}
}

func TestIsGenerators(t *testing.T) {
	cases := map[[2]string]bool{
		{"agent-rbac-generator-northx4k2p", ""}:       true,
		{"agent-rbac-generator-northx4k2p", "north"}:  true,
		{"agent-rbac-generator-north-x4k2p", "north"}: true,
		{"agent-rbac-generator-northx4k2p", "south"}:  false,
		{"north-x4k2p", ""}:                           false,
		{"", ""}:                                      false,
	}
	for in, want := range cases {
		if got := identity.IsGenerators(in[0], in[1]); got != want {
			t.Errorf("IsGenerators(%q, %q) = %v", in[0], in[1], got)
		}
	}
}
