package clouds_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoLibraries: no build has the clouds' own libraries, nor those that link them. They are larger than all of the program, and what is
// asked of clouds takes a few requests.
func TestNoLibraries(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{
		"github.com/aws/aws-sdk-go", "github.com/Azure/azure-sdk-for-go", "github.com/AzureAD/", "cloud.google.com/go", "google.golang.org/api",
		"github.com/hashicorp/vault", "github.com/getsops/sops", "github.com/fluxcd/pkg/auth",
	} {
		if strings.Contains(string(content), "\t"+module) {
			t.Errorf("go.mod requires %s", module)
		}
	}
}
