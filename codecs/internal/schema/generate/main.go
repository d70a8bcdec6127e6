// Command generate writes the Go code of the schema in the working directory; see package schema.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/quiesce/quiesce/codecs/internal/schema"
)

func main() {
	if err := schema.Write(context.Background(), "."); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
