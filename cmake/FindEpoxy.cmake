# libepoxy: Epoxy_FOUND and the target Epoxy::Epoxy.
#
# Found without pkg-config, which a machine that only has a GPU and a compiler may lack. What it takes
# to build the GL sorters is epoxy/*.h, EGL/eglplatform.h with KHR/khrplatform.h, and libepoxy.so;
# neither Mesa's nor a driver's headers, nor X11's. libEGL and libOpenGL are loaded when the program
# runs. Packages that are unpacked rather than installed serve too:
#   apt-get download libepoxy-dev libepoxy0 libegl-dev libgl-dev    and dpkg-deb -x each to a folder P
#   cmake -DCMAKE_PREFIX_PATH=P/usr …
find_path(EPOXY_INCLUDE_DIR epoxy/egl.h)
find_path(EGL_INCLUDE_DIR EGL/eglplatform.h HINTS "${EPOXY_INCLUDE_DIR}")
find_library(EPOXY_LIBRARY epoxy)
mark_as_advanced(EPOXY_INCLUDE_DIR EGL_INCLUDE_DIR EPOXY_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Epoxy REQUIRED_VARS EPOXY_LIBRARY EPOXY_INCLUDE_DIR
                                                      EGL_INCLUDE_DIR)
if(Epoxy_FOUND AND NOT TARGET Epoxy::Epoxy)
  add_library(Epoxy::Epoxy UNKNOWN IMPORTED GLOBAL)
  set_target_properties(
    Epoxy::Epoxy
    PROPERTIES IMPORTED_LOCATION "${EPOXY_LIBRARY}"
               INTERFACE_INCLUDE_DIRECTORIES "${EPOXY_INCLUDE_DIR};${EGL_INCLUDE_DIR}"
               # Older EGL headers include X11's unless told that there is none.
               INTERFACE_COMPILE_DEFINITIONS "EGL_NO_X11")
endif()
