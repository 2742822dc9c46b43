// The GRU kernels of one instruction set.
#include "gru_backward.hpp"
#include "gru_forward.hpp"

namespace synv {
namespace SYNV_ISA {

bool gru_forward(GruForwardArgs<float> const& args) { return GruForward<float>(args).run(); }
bool gru_forward(GruForwardArgs<double> const& args) { return GruForward<double>(args).run(); }
bool gru_backward(GruBackwardArgs<float> const& args) { return GruBackward<float>(args).run(); }
bool gru_backward(GruBackwardArgs<double> const& args) { return GruBackward<double>(args).run(); }

}  // namespace SYNV_ISA
}  // namespace synv
